// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRejectedEvents(t *testing.T) {
	observe := func(value, weight any) []any {
		return wireEvent(pairs{{"metric", itl}, {"operation", "observe"}, {"value", value}, {"weight", weight}})
	}
	inc := func(value, weight any) []any {
		return wireEvent(pairs{{"metric", "tokenspeed:num_requests_total"}, {"operation", "inc"}, {"value", value}, {"weight", weight}})
	}
	set := func(value, weight any) []any { return wireEvent(pairs{{"value", value}, {"weight", weight}}) }
	changed := func(field string, value any) []any { return wireEvent(pairs{{field, value}}) }
	many := pairs{}
	for i := range 65 {
		many = append(many, pair{strings.Repeat("l", i+1), "v"})
	}
	tests := map[string]struct {
		event any
		want  reason
		field string
		got   string
	}{
		// weight: < 1, fractional, over 2³², or other than 1 with inc and set.
		"weight 0":                 {observe(0.01, 0), rejectedWeight, "weight", "0"},
		"weight negative":          {observe(0.01, -3), rejectedWeight, "weight", "-3"},
		"weight lowest":            {observe(0.01, int64(math.MinInt64)), rejectedWeight, "weight", "-9223372036854775808"},
		"weight fractional":        {observe(0.01, 2.5), rejectedWeight, "weight", "2.5"},
		"weight below 1":           {observe(0.01, 0.5), rejectedWeight, "weight", "0.5"},
		"weight over 2^32":         {observe(0.01, int64(1)<<32+1), rejectedWeight, "weight", "4294967297"},
		"weight huge":              {observe(0.01, uint64(math.MaxUint64)), rejectedWeight, "weight", "18446744073709551615"},
		"weight NaN":               {observe(0.01, math.NaN()), rejectedWeight, "weight", "NaN"},
		"weight infinite":          {observe(0.01, math.Inf(1)), rejectedWeight, "weight", "+Inf"},
		"weight nil":               {observe(0.01, nil), rejectedWeight, "weight", "nil"},
		"weight true":              {observe(0.01, true), rejectedWeight, "weight", "true"},
		"weight string":            {observe(0.01, "3"), rejectedWeight, "weight", `"3"`},
		"weight array":             {observe(0.01, []any{3}), rejectedWeight, "weight", "an array"},
		"weight 2 with inc":        {inc(1, 2), rejectedWeight, "weight", "2"},
		"weight 2 with set":        {set(1, 2), rejectedWeight, "weight", "2"},
		"value × weight too large": {observe(1e308, 10), rejectedOverflow, "weight", "10"},

		// not_finite: any operation.
		"observe NaN":  {observe(math.NaN(), 1), rejectedNotFinite, "value", "NaN"},
		"observe +Inf": {observe(math.Inf(1), 1), rejectedNotFinite, "value", "+Inf"},
		"observe -Inf": {observe(math.Inf(-1), 1), rejectedNotFinite, "value", "-Inf"},
		"inc NaN":      {inc(math.NaN(), 1), rejectedNotFinite, "value", "NaN"},
		"inc +Inf":     {inc(math.Inf(1), 1), rejectedNotFinite, "value", "+Inf"},
		"set NaN":      {set(math.NaN(), 1), rejectedNotFinite, "value", "NaN"},
		"set -Inf":     {set(math.Inf(-1), 1), rejectedNotFinite, "value", "-Inf"},
		"set NaN32":    {set(float32(math.NaN()), 1), rejectedNotFinite, "value", "NaN"},

		"negative increment":          {inc(-1, 1), rejectedNegativeIncrement, "value", "-1"},
		"negative increment, float":   {inc(-0.5, 1), rejectedNegativeIncrement, "value", "-0.5"},
		"smallest negative increment": {inc(-5e-324, 1), rejectedNegativeIncrement, "value", "-5e-324"},

		"operation unknown": {changed("operation", "add"), rejectedOperation, "operation", `"add"`},
		"operation case":    {changed("operation", "Set"), rejectedOperation, "operation", `"Set"`},
		"operation empty":   {changed("operation", ""), rejectedOperation, "operation", `""`},
		"operation nil":     {changed("operation", nil), rejectedOperation, "operation", "nil"},
		"operation number":  {changed("operation", 1), rejectedOperation, "operation", "1"},

		// label: also a label map that is none.
		"labels nil":             {changed("labels", nil), rejectedLabel, "labels", "nil"},
		"labels array":           {changed("labels", []any{"a", "b"}), rejectedLabel, "labels", "an array"},
		"labels string":          {changed("labels", "a=b"), rejectedLabel, "labels", `"a=b"`},
		"label value number":     {changed("labels", pairs{{"dp_rank", 0}}), rejectedLabel, `labels."dp_rank"`, "0"},
		"label value bool":       {changed("labels", pairs{{"x", false}}), rejectedLabel, `labels."x"`, "false"},
		"label value map":        {changed("labels", pairs{{"x", pairs{}}}), rejectedLabel, `labels."x"`, "a map"},
		"label value binary":     {changed("labels", pairs{{"x", []byte("b")}}), rejectedLabel, `labels."x"`, "binary"},
		"label value no UTF-8":   {changed("labels", pairs{{"x", raw{0xa1, 0xff}}}), rejectedLabel, `labels."x"`, `"\xff"`},
		"label name number":      {changed("labels", pairs{{1, "x"}}), rejectedLabel, "labels", "1"},
		"label name nil":         {changed("labels", pairs{{nil, "x"}}), rejectedLabel, "labels", "nil"},
		"label name empty":       {changed("labels", pairs{{"", "x"}}), rejectedLabel, "labels", `""`},
		"label name no UTF-8":    {changed("labels", pairs{{raw{0xa1, 0xc0}, "x"}}), rejectedLabel, "labels", `"\xc0"`},
		"label twice":            {changed("labels", pairs{{"x", "1"}, {"y", "1"}, {"x", "2"}}), rejectedLabel, `labels."x"`, "the label twice"},
		"65 labels":              {changed("labels", many), rejectedLabel, "labels", "65 labels"},
		"labels over 4096 bytes": {changed("labels", pairs{{"x", strings.Repeat("x", 4096)}}), rejectedLabel, "labels", "4097 bytes of text or more"},

		"value over 2^63-1":     {set(uint64(math.MaxInt64)+1, 1), rejectedOutOfRange, "value", "9223372036854775808"},
		"timestamp over 2^63-1": {changed("timestamp_ns", uint64(math.MaxUint64)), rejectedOutOfRange, "timestamp_ns", "18446744073709551615"},

		// malformed: the event alone.
		"event nil":          {nil, rejectedMalformed, "event", "nil"},
		"event map":          {pairs{{"metric", "x"}}, rejectedMalformed, "event", "a map"},
		"event string":       {"set", rejectedMalformed, "event", `"set"`},
		"event binary":       {[]byte{1}, rejectedMalformed, "event", "binary"},
		"event extension":    {raw{0xd4, 1, 2}, rejectedMalformed, "event", "an extension"},
		"event empty":        {[]any{}, rejectedMalformed, "event", "an array of 0"},
		"event of 5":         {wireEvent(nil)[:5], rejectedMalformed, "event", "an array of 5"},
		"event of 7":         {append(wireEvent(nil), 1), rejectedMalformed, "event", "an array of 7"},
		"timestamp 0":        {changed("timestamp_ns", 0), rejectedMalformed, "timestamp_ns", "0"},
		"timestamp negative": {changed("timestamp_ns", -1), rejectedMalformed, "timestamp_ns", "-1"},
		"timestamp float":    {changed("timestamp_ns", 1.7e18), rejectedMalformed, "timestamp_ns", "1.7e+18"},
		"timestamp nil":      {changed("timestamp_ns", nil), rejectedMalformed, "timestamp_ns", "nil"},
		"metric empty":       {changed("metric", ""), rejectedMalformed, "metric", `""`},
		"metric nil":         {changed("metric", nil), rejectedMalformed, "metric", "nil"},
		"metric too long":    {changed("metric", strings.Repeat("m", 256)), rejectedMalformed, "metric", `"` + strings.Repeat("m", 60) + `"… (256 bytes)`},
		"metric no UTF-8":    {changed("metric", raw{0xa1, 0xff}), rejectedMalformed, "metric", `"\xff"`},
		"value nil":          {set(nil, 1), rejectedMalformed, "value", "nil"},
		"value bool":         {set(true, 1), rejectedMalformed, "value", "true"},
		"value string":       {set("3", 1), rejectedMalformed, "value", `"3"`},
		"value array":        {set([]any{3}, 1), rejectedMalformed, "value", "an array"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, rejected := readOne(t, test.event)
			require.NotNil(t, rejected)
			assert.Equal(t, test.want, rejected.reason, "%v", rejected)
			assert.Equal(t, test.field, rejected.field)
			assert.Equal(t, test.got, show(rejected.got))
			assert.NotEmpty(t, rejected.want)
			assert.NotContains(t, rejected.Error(), "\n")
		})
	}
}

func TestAcceptedEvents(t *testing.T) {
	tests := map[string]struct {
		changes pairs
		want    func(e *event)
	}{
		"a gauge": {nil, func(*event) {}},
		"a weighted observation": {
			pairs{{"metric", itl}, {"operation", "observe"}, {"value", 0.01}, {"weight", 3}},
			func(e *event) {
				e.metric, e.operation, e.value, e.weight = []byte(itl), operationObserve, floatNumber(0.01), 3
			},
		},
		"a whole float as weight": {
			pairs{{"operation", "observe"}, {"weight", 3.0}},
			func(e *event) { e.operation, e.weight = operationObserve, 3 },
		},
		"the largest weight": {
			pairs{{"operation", "observe"}, {"weight", int64(1) << 32}},
			func(e *event) { e.operation, e.weight = operationObserve, 1<<32 },
		},
		"weight 1 as a float with inc": {
			pairs{{"operation", "inc"}, {"weight", 1.0}}, func(e *event) { e.operation = operationInc },
		},
		"inc 0":          {pairs{{"operation", "inc"}, {"value", 0}}, func(e *event) { e.operation, e.value = operationInc, intNumber(0) }},
		"inc -0.0":       {pairs{{"operation", "inc"}, {"value", math.Copysign(0, -1)}}, func(e *event) { e.operation, e.value = operationInc, floatNumber(math.Copysign(0, -1)) }},
		"negative gauge": {pairs{{"value", -7}}, func(e *event) { e.value = intNumber(-7) }},
		"negative observation": {
			pairs{{"operation", "observe"}, {"value", -0.25}}, func(e *event) { e.operation, e.value = operationObserve, floatNumber(-0.25) },
		},
		"float32":         {pairs{{"value", float32(0.5)}}, func(e *event) { e.value = floatNumber(0.5) }},
		"largest int":     {pairs{{"value", uint64(math.MaxInt64)}}, func(e *event) { e.value = intNumber(math.MaxInt64) }},
		"lowest int":      {pairs{{"value", int64(math.MinInt64)}}, func(e *event) { e.value = intNumber(math.MinInt64) }},
		"largest float":   {pairs{{"value", math.MaxFloat64}}, func(e *event) { e.value = floatNumber(math.MaxFloat64) }},
		"first timestamp": {pairs{{"timestamp_ns", 1}}, func(e *event) { e.timestamp = 1 }},
		"last timestamp":  {pairs{{"timestamp_ns", int64(math.MaxInt64)}}, func(e *event) { e.timestamp = math.MaxInt64 }},
		"no labels":       {pairs{{"labels", pairs{}}}, func(e *event) { e.labels = nil }},
		"labels sorted": {
			pairs{{"labels", pairs{{"z", "1"}, {"a", "2"}, {"m", "3"}}}},
			func(e *event) {
				e.labels = []label{{[]byte("a"), []byte("2")}, {[]byte("m"), []byte("3")}, {[]byte("z"), []byte("1")}}
			},
		},
		"labels null and empty are left out": {
			pairs{{"labels", pairs{{"app_key", nil}, {"model_name", ""}, {"dp_rank", "1"}}}},
			func(e *event) { e.labels = []label{{[]byte("dp_rank"), []byte("1")}} },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := event{
				timestamp: testTime, metric: []byte("tokenspeed:num_requests_running"), operation: operationSet, value: intNumber(3),
				labels: []label{{[]byte("dp_rank"), []byte("0")}, {[]byte("model_name"), []byte("llama")}}, weight: 1,
			}
			test.want(&want)
			got, rejected := readOne(t, wireEvent(test.changes))
			require.Nil(t, rejected, "%v", rejected)
			if len(want.labels) == 0 {
				require.Empty(t, got.labels)
				got.labels, want.labels = nil, nil
			}
			assert.Equal(t, want, got)
		})
	}
}

// A bad event costs itself alone, wherever it stands and wherever its fault is.
func TestBadEventCostsItselfAlone(t *testing.T) {
	bad := []any{
		nil,
		[]any{},
		wireEvent(pairs{{"timestamp_ns", "x"}}), wireEvent(pairs{{"metric", pairs{{"a", []any{1, 2}}}}}),
		wireEvent(pairs{{"operation", []any{1}}}), wireEvent(pairs{{"value", raw{0xc7, 3, 1, 1, 2, 3}}}),
		wireEvent(pairs{{"labels", pairs{{"a", pairs{{"b", 1}}}, {"c", "d"}}}}), wireEvent(pairs{{"weight", 0}}),
		append(wireEvent(nil), []any{1, []any{2}}),
	}
	var events []any
	for i, b := range bad {
		events = append(events, wireEvent(pairs{{"value", i}}), b)
	}
	events = append(events, wireEvent(pairs{{"value", len(bad)}}))
	var d decoder
	m, rejected := d.open(framesOf(wireMessage(1, 0, 0, events...)))
	require.Nil(t, rejected)
	good := 0
	for range m.events {
		e, rejected := d.next()
		if rejected == nil {
			assert.Equal(t, intNumber(int64(good)), e.value)
			good++
		}
	}
	assert.Equal(t, len(bad)+1, good)
	assert.Zero(t, d.walk.Left())
}
