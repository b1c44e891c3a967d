// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadMessage(t *testing.T) {
	resource := pairs{{"k8s.pod.name", "engine-0"}, {"gpus", 8}, {"share", 0.5}, {"spot", true}}
	whole := pairs{
		{keyVersion, 1},
		{keyProducer, pairs{{keyHost, "gpu-7"}, {keyPID, 4242}, {keyStartNS, testStart}, {keyRank, 3}}},
		{keySeq, 100},
		{keyDroppedTotal, 7},
		{keyResource, resource},
		{keyEvents, []any{wireEvent(nil), wireEvent(nil)}},
	}
	want := message{
		producer: producerKey{"gpu-7", 4242, testStart}, seq: 100, droppedTotal: 7, resource: encode(resource), events: 2,
	}
	reversed := slices.Clone(whole)
	slices.Reverse(reversed)
	tests := map[string]struct {
		wire pairs
		want func(m *message)
	}{
		"whole":              {whole, func(*message) {}},
		"any order of keys":  {reversed, func(*message) {}},
		"unknown keys":       {whole.set("later", pairs{{"x", []any{1, nil, raw{0xd4, 1, 2}}}}).set(keyProducer, append(testProducer(4242), pair{"role", nil})), func(*message) {}},
		"no resource":        {whole.without(keyResource), func(m *message) { m.resource = nil }},
		"no events":          {whole.set(keyEvents, []any{}), func(m *message) { m.events = 0 }},
		"last possible seq":  {whole.set(keySeq, int64(math.MaxInt64-2)), func(m *message) { m.seq = math.MaxInt64 - 2 }},
		"nothing but a last": {whole.set(keyEvents, []any{}).set(keySeq, int64(math.MaxInt64)), func(m *message) { m.seq, m.events = math.MaxInt64, 0 }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := want
			test.want(&want)
			var d decoder
			got, rejected := d.open(framesOf(test.wire))
			require.Nil(t, rejected, "%v", rejected)
			assert.Equal(t, want, got)
			for range got.events {
				e, rejected := d.next()
				require.Nil(t, rejected)
				assert.Equal(t, intNumber(3), e.value)
			}
		})
	}
}

func TestRejectedMessages(t *testing.T) {
	good := wireMessage(1, 0, 0, wireEvent(nil))
	deep := raw(append(bytes.Repeat([]byte{0x91}, 31), 0xc0))
	deepest := raw(append(bytes.Repeat([]byte{0x91}, 32), 0xc0))
	huge := []byte{0xff, 0xff, 0xff, 0xff}
	tests := map[string]struct {
		frames [][]byte
		want   reason
		field  string
		got    string
	}{
		"no frame":            {nil, rejectedMalformed, "frames", "0"},
		"one frame":           {[][]byte{[]byte(magic)}, rejectedMalformed, "frames", "1"},
		"three frames":        {append(framesOf(good), nil), rejectedMalformed, "frames", "3"},
		"other first frame":   {[][]byte{[]byte("tsme2"), encode(good)}, rejectedMalformed, "first frame", `"tsme2"`},
		"empty first frame":   {[][]byte{{}, encode(good)}, rejectedMalformed, "first frame", `""`},
		"empty second frame":  {[][]byte{[]byte(magic), {}}, rejectedMalformed, "second frame", "a payload cut short"},
		"array":               {framesOf([]any{1}), rejectedMalformed, "second frame", "an array"},
		"text":                {[][]byte{[]byte(magic), []byte("hello")}, rejectedMalformed, "second frame", "104"},
		"empty map":           {framesOf(pairs{}), rejectedMalformed, "v", "nothing"},
		"trailing byte":       {[][]byte{[]byte(magic), append(encode(good), 0)}, rejectedMalformed, "second frame", "1 bytes after the map"},
		"key no string":       {framesOf(append(pairs{{1, 1}}, good...)), rejectedMalformed, "second frame", "1"},
		"key no UTF-8":        {framesOf(append(pairs{{raw{0xa1, 0xff}, 1}}, good...)), rejectedMalformed, "second frame", `"\xff"`},
		"invalid code":        {framesOf(good.set("x", raw{0xc1})), rejectedMalformed, "second frame", "an invalid code"},
		"too deep":            {framesOf(good.set("x", deepest)), rejectedMalformed, "second frame", "more levels of maps and arrays"},
		"event too deep":      {framesOf(good.set(keyEvents, []any{deepest})), rejectedMalformed, keyEvents, "more levels of maps and arrays"},
		"map32 of nothing":    {[][]byte{[]byte(magic), append([]byte{0xdf}, huge...)}, rejectedMalformed, "second frame", "a payload cut short"},
		"array32 of nothing":  {framesOf(good.set(keyEvents, raw(append([]byte{0xdd}, huge...)))), rejectedMalformed, keyEvents, "a payload cut short"},
		"str32 of nothing":    {framesOf(good.set("x", raw(append([]byte{0xdb}, huge...)))), rejectedMalformed, "second frame", "a payload cut short"},
		"bin32 of nothing":    {framesOf(good.set("x", raw(append([]byte{0xc6}, huge...)))), rejectedMalformed, "second frame", "a payload cut short"},
		"ext32 of nothing":    {framesOf(good.set("x", raw(append(append([]byte{0xc9}, huge...), 1)))), rejectedMalformed, "second frame", "a payload cut short"},
		"map in event, short": {framesOf(good.set(keyEvents, []any{raw(append([]byte{0xdf}, huge...))})), rejectedMalformed, keyEvents, "a payload cut short"},

		"version 2":       {framesOf(good.set(keyVersion, 2)), rejectedMalformed, "v", "2"},
		"version string":  {framesOf(good.set(keyVersion, "1")), rejectedMalformed, "v", `"1"`},
		"version float":   {framesOf(good.set(keyVersion, 1.0)), rejectedMalformed, "v", "1"},
		"version nil":     {framesOf(good.set(keyVersion, nil)), rejectedMalformed, "v", "nil"},
		"version missing": {framesOf(good.without(keyVersion)), rejectedMalformed, "v", "nothing"},
		"version twice":   {framesOf(append(good, pair{keyVersion, 1})), rejectedMalformed, "v", "the key twice"},

		"producer missing":      {framesOf(good.without(keyProducer)), rejectedMalformed, "producer", "nothing"},
		"producer string":       {framesOf(good.set(keyProducer, "gpu-7")), rejectedMalformed, "producer", `"gpu-7"`},
		"host missing":          {framesOf(good.set(keyProducer, testProducer(1).without(keyHost))), rejectedMalformed, "producer.host", "nothing"},
		"host empty":            {framesOf(good.set(keyProducer, testProducer(1).set(keyHost, ""))), rejectedMalformed, "producer.host", `""`},
		"host too long":         {framesOf(good.set(keyProducer, testProducer(1).set(keyHost, strings.Repeat("h", 256)))), rejectedMalformed, "producer.host", `"` + strings.Repeat("h", 60) + `"… (256 bytes)`},
		"host twice":            {framesOf(good.set(keyProducer, append(testProducer(1), pair{keyHost, "x"}))), rejectedMalformed, "producer.host", "the key twice"},
		"pid negative":          {framesOf(good.set(keyProducer, testProducer(-1))), rejectedMalformed, "producer.pid", "-1"},
		"pid missing":           {framesOf(good.set(keyProducer, testProducer(1).without(keyPID))), rejectedMalformed, "producer.pid", "nothing"},
		"start_ns 0":            {framesOf(good.set(keyProducer, testProducer(1).set(keyStartNS, 0))), rejectedMalformed, "producer.start_ns", "0"},
		"start_ns missing":      {framesOf(good.set(keyProducer, testProducer(1).without(keyStartNS))), rejectedMalformed, "producer.start_ns", "nothing"},
		"rank string":           {framesOf(good.set(keyProducer, testProducer(1).set(keyRank, "0"))), rejectedMalformed, "producer.rank", `"0"`},
		"pid out of range":      {framesOf(good.set(keyProducer, testProducer(1).set(keyPID, uint64(math.MaxUint64)))), rejectedOutOfRange, "producer.pid", "18446744073709551615"},
		"seq negative":          {framesOf(good.set(keySeq, -1)), rejectedMalformed, "seq", "-1"},
		"seq missing":           {framesOf(good.without(keySeq)), rejectedMalformed, "seq", "nothing"},
		"seq out of range":      {framesOf(good.set(keySeq, uint64(math.MaxInt64)+1)), rejectedOutOfRange, "seq", "9223372036854775808"},
		"seq with events":       {framesOf(good.set(keySeq, int64(math.MaxInt64))), rejectedOutOfRange, "seq", "9223372036854775807"},
		"dropped negative":      {framesOf(good.set(keyDroppedTotal, -1)), rejectedMalformed, "dropped_total", "-1"},
		"dropped float":         {framesOf(good.set(keyDroppedTotal, 1.5)), rejectedMalformed, "dropped_total", "1.5"},
		"dropped missing":       {framesOf(good.without(keyDroppedTotal)), rejectedMalformed, "dropped_total", "nothing"},
		"resource nil":          {framesOf(good.set(keyResource, nil)), rejectedMalformed, "resource", "nil"},
		"resource array":        {framesOf(good.set(keyResource, []any{})), rejectedMalformed, "resource", "an array"},
		"resource of array":     {framesOf(good.set(keyResource, pairs{{"x", []any{}}})), rejectedMalformed, `resource."x"`, "an array"},
		"resource of nil":       {framesOf(good.set(keyResource, pairs{{"x", nil}})), rejectedMalformed, `resource."x"`, "nil"},
		"resource of NaN":       {framesOf(good.set(keyResource, pairs{{"x", math.NaN()}})), rejectedMalformed, `resource."x"`, "NaN"},
		"resource no name":      {framesOf(good.set(keyResource, pairs{{"", 1}})), rejectedMalformed, "resource", "a name of 0 bytes, 0 of text so far"},
		"resource too long":     {framesOf(good.set(keyResource, pairs{{"x", strings.Repeat("x", 65536)}})), rejectedMalformed, "resource", "a name of 1 bytes, 65537 of text so far"},
		"resource of 1025 keys": {framesOf(good.set(keyResource, numbered(1025))), rejectedMalformed, "resource", "1025 keys"},
		"resource int":          {framesOf(good.set(keyResource, pairs{{"x", uint64(math.MaxUint64)}})), rejectedOutOfRange, `resource."x"`, "18446744073709551615"},
		"events missing":        {framesOf(good.without(keyEvents)), rejectedMalformed, "events", "nothing"},
		"events map":            {framesOf(good.set(keyEvents, pairs{})), rejectedMalformed, "events", "a map"},
		"events nil":            {framesOf(good.set(keyEvents, nil)), rejectedMalformed, "events", "nil"},
		"events twice":          {framesOf(append(good, pair{keyEvents, []any{}})), rejectedMalformed, "events", "the key twice"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var d decoder
			_, rejected := d.open(test.frames)
			require.NotNil(t, rejected)
			assert.Equal(t, test.want, rejected.reason, "%v", rejected)
			assert.Equal(t, test.field, rejected.field)
			assert.Equal(t, test.got, show(rejected.got))
			assert.NotEmpty(t, rejected.want)
		})
	}
	t.Run("31 levels below the message are fine", func(t *testing.T) {
		var d decoder
		_, rejected := d.open(framesOf(good.set("x", deep)))
		assert.Nil(t, rejected, "%v", rejected)
	})
}

func numbered(n int) pairs {
	var all pairs
	for i := range n {
		all = append(all, pair{fmt.Sprint("k", i), i})
	}
	return all
}

// Between messages a decoder holds nothing of the last one.
func TestReleasedDecoderHoldsNothing(t *testing.T) {
	var d decoder
	m, rejected := d.open(framesOf(wireMessage(1, 0, 0, wireEvent(nil))))
	require.Nil(t, rejected)
	for range m.events {
		_, _ = d.next()
	}
	require.NotEmpty(t, d.labels)
	d.release()
	assert.Nil(t, d.walk.Payload())
	for _, l := range d.labels[:cap(d.labels)] {
		assert.Equal(t, label{}, l)
	}
	_, rejected = d.open(framesOf(wireMessage(1, 0, 0, wireEvent(nil))))
	assert.Nil(t, rejected)
}

func TestMessageCutShort(t *testing.T) {
	payload := encode(wireMessage(1, 0, 0, wireEvent(nil), wireEvent(pairs{{"value", 0.5}})))
	for n := range payload {
		var d decoder
		_, rejected := d.open([][]byte{[]byte(magic), payload[:n:n]})
		require.NotNil(t, rejected, "cut after %d bytes", n)
		require.Equal(t, rejectedMalformed, rejected.reason)
		require.Contains(t, show(rejected.got), "cut short", "after %d bytes", n)
	}
}

// One wrong byte anywhere is a rejection or another good message, and never
// costs more memory than the message has.
func TestWrongByte(t *testing.T) {
	payload := encode(wireMessage(1, 0, 0, wireEvent(nil), wireEvent(pairs{{"value", 0.5}, {"labels", pairs{{"a", nil}, {"b", "c"}}}})))
	var d decoder
	readable := 0
	for i, right := range payload {
		for wrong := range 256 {
			payload[i] = byte(wrong)
			m, rejected := d.open([][]byte{[]byte(magic), payload})
			if rejected != nil {
				continue
			}
			readable++
			for range m.events {
				_, _ = d.next()
			}
		}
		payload[i] = right
	}
	assert.Greater(t, readable, 1000)
}

// A length is a claim: nothing is allocated for it.
func TestLengthsAllocateNothing(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff}
	for name, value := range map[string]raw{
		"array32": append([]byte{0xdd}, huge...), "map32": append([]byte{0xdf}, huge...),
		"str32": append([]byte{0xdb}, huge...), "bin32": append([]byte{0xc6}, huge...),
		"ext32": append(append([]byte{0xc9}, huge...), 1),
	} {
		t.Run(name, func(t *testing.T) {
			frames := framesOf(wireMessage(1, 0, 0, value))
			var d decoder
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 100 {
				_, rejected := d.open(frames)
				require.NotNil(t, rejected)
			}
			runtime.ReadMemStats(&after)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100*8192))
		})
	}
}

func TestReadingAllocatesLittle(t *testing.T) {
	frames := framesOf(wireMessage(1, 0, 0, slices.Repeat([]any{wireEvent(nil)}, 100)...))
	var d decoder
	perMessage := testing.AllocsPerRun(100, func() {
		m, rejected := d.open(frames)
		if rejected != nil {
			t.Fatal(rejected)
		}
		for range m.events {
			if _, rejected := d.next(); rejected != nil {
				t.Fatal(rejected)
			}
		}
	})
	assert.LessOrEqual(t, perMessage, 8.0, "of a message of 100 events")
}
