// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

// Instrument is the pdata form of a metric.
type Instrument int

// The forms that FPM metrics take.
const (
	// GaugeInt and GaugeDouble have one point a message.
	GaugeInt Instrument = iota
	GaugeDouble
	// SumCumulative is a monotonic cumulative int sum.
	SumCumulative
	// SumDelta is a monotonic delta int sum.
	SumDelta
	// Histogram is a delta histogram, explicit or exponential.
	Histogram
)

// Metric describes one metric of a forward pass. Its name, unit, description
// and form never change while a process lives.
type Metric struct {
	Name        string
	Description string
	// Unit is in UCUM; curly braces annotate.
	Unit       string
	Instrument Instrument
	// Field is the wire field a gauge carries, "group.key"; empty otherwise.
	Field string

	// count and value read a gauge's field; exactly one is set for a gauge.
	count func(*Record) *int64
	value func(*Record) *float64
}

// Names of the metrics that are not gauges of a wire field.
const (
	MetricMessages           = "fpm.messages"
	MetricMessagesLost       = "fpm.messages.lost"
	MetricStepDuration       = "fpm.step.duration"
	MetricDecodeTokenLatency = "fpm.decode.token_latency"
	MetricPrefillTokens      = "fpm.prefill.tokens"
	MetricDecodeTokens       = "fpm.decode.tokens"
	MetricEndpointUp         = "fpm.endpoint.up"
)

// Attribute keys and the event name of the pdata contract.
const (
	// AttrWorkerID is a resource attribute: the payload's worker_id, also empty.
	AttrWorkerID = "fpm.worker_id"
	// AttrDPRank (int) is on every metric point and log record of a worker.
	AttrDPRank = "fpm.dp_rank"
	// AttrTimingScope (string) goes with it when the payload has a timing_scope.
	AttrTimingScope = "fpm.timing_scope"
	// AttrEndpoint names the endpoint on points of fpm.endpoint.up.
	AttrEndpoint = "fpm.endpoint"
	// AttrSequence (int) is a log attribute: the frame's sequence number.
	AttrSequence = "fpm.sequence"
	// AttrCaptureMode is a log attribute of records read from a trace file.
	AttrCaptureMode = "fpm.capture_mode"

	AttrServiceNamespace  = "service.namespace"
	AttrServiceName       = "service.name"
	AttrServiceInstanceID = "service.instance.id"
	AttrServerAddress     = "server.address"
	AttrServerPort        = "server.port"

	// EventForwardPass is the event name of a forward pass's log record.
	EventForwardPass = "fpm.forward_pass"
)

// Units. Ratios and states carry none: "1" would become the suffix _ratio in
// Prometheus.
const (
	unitRequest      = "{request}"
	unitToken        = "{token}"
	unitTokenSquared = "{token^2}"
	unitMessage      = "{message}"
	unitSecond       = "s"
)

// Metrics is the table of all metrics of a worker, gauges first, in the order
// of the component documentation, which is generated from it.
var Metrics = []Metric{
	countGauge("fpm.scheduled.prefill.requests", unitRequest, keyScheduled, keyNumPrefillRequests,
		"Prefill requests in this forward pass.",
		func(r *Record) *int64 { return &r.Scheduled.NumPrefillRequests }),
	countGauge("fpm.scheduled.prefill.tokens", unitToken, keyScheduled, keySumPrefillTokens,
		"Prompt tokens computed in this forward pass (the chunk, without cached tokens).",
		func(r *Record) *int64 { return &r.Scheduled.SumPrefillTokens }),
	valueGauge("fpm.scheduled.prefill.length.variance", unitTokenSquared, keyScheduled, keyVarPrefillLength,
		"Population variance of the full prompt lengths of the prefill requests in this forward pass.",
		func(r *Record) *float64 { return &r.Scheduled.VarPrefillLength }),
	countGauge("fpm.scheduled.prefill.kv_tokens", unitToken, keyScheduled, keySumPrefillKVTokens,
		"Tokens whose KV cache entries the prefill requests of this forward pass read (cached prefixes and earlier chunks).",
		func(r *Record) *int64 { return &r.Scheduled.SumPrefillKVTokens }),
	countGauge("fpm.scheduled.decode.requests", unitRequest, keyScheduled, keyNumDecodeRequests,
		"Decode requests in this forward pass.",
		func(r *Record) *int64 { return &r.Scheduled.NumDecodeRequests }),
	countGauge("fpm.scheduled.decode.kv_tokens", unitToken, keyScheduled, keySumDecodeKVTokens,
		"Tokens whose KV cache entries the decode requests of this forward pass read.",
		func(r *Record) *int64 { return &r.Scheduled.SumDecodeKVTokens }),
	valueGauge("fpm.scheduled.decode.kv_tokens.variance", unitTokenSquared, keyScheduled, keyVarDecodeKVTokens,
		"Population variance of the KV cache lengths of the decode requests in this forward pass.",
		func(r *Record) *float64 { return &r.Scheduled.VarDecodeKVTokens }),
	countGauge("fpm.queued.prefill.requests", unitRequest, keyQueued, keyNumPrefillRequests,
		"Requests that wait for their prefill.",
		func(r *Record) *int64 { return &r.Queued.NumPrefillRequests }),
	countGauge("fpm.queued.prefill.tokens", unitToken, keyQueued, keySumPrefillTokens,
		"Prompt tokens of the requests that wait for their prefill (whole prompts).",
		func(r *Record) *int64 { return &r.Queued.SumPrefillTokens }),
	valueGauge("fpm.queued.prefill.length.variance", unitTokenSquared, keyQueued, keyVarPrefillLength,
		"Population variance of the prompt lengths of the requests that wait for their prefill.",
		func(r *Record) *float64 { return &r.Queued.VarPrefillLength }),
	countGauge("fpm.queued.decode.requests", unitRequest, keyQueued, keyNumDecodeRequests,
		"Decode requests that wait (preempted, or waiting for transferred KV cache entries).",
		func(r *Record) *int64 { return &r.Queued.NumDecodeRequests }),
	countGauge("fpm.queued.decode.kv_tokens", unitToken, keyQueued, keySumDecodeKVTokens,
		"Tokens in the KV cache of the decode requests that wait.",
		func(r *Record) *int64 { return &r.Queued.SumDecodeKVTokens }),
	valueGauge("fpm.queued.decode.kv_tokens.variance", unitTokenSquared, keyQueued, keyVarDecodeKVTokens,
		"Population variance of the KV cache lengths of the decode requests that wait.",
		func(r *Record) *float64 { return &r.Queued.VarDecodeKVTokens }),
	{
		Name: MetricMessages, Unit: unitMessage, Instrument: SumCumulative,
		Description: "The publisher's message counter (counter_id), raw. A restart of the publisher begins a new start time.",
	},
	{
		Name: MetricMessagesLost, Unit: unitMessage, Instrument: SumCumulative,
		Description: "Messages that gaps in the publisher's counter prove missing, since the rank was first heard.",
	},
	{
		Name: MetricStepDuration, Unit: unitSecond, Instrument: Histogram,
		Description: "Duration of a forward pass as the engine measured it (wall_time). Heartbeats and untimed passes are not observed.",
	},
	{
		Name: MetricDecodeTokenLatency, Unit: unitSecond, Instrument: Histogram,
		Description: "How long each decoding request waited for its next token: the duration of a forward pass, counted once for each of its decode requests.",
	},
	{
		Name: MetricPrefillTokens, Unit: unitToken, Instrument: SumDelta,
		Description: "Prompt tokens computed.",
	},
	{
		Name: MetricDecodeTokens, Unit: unitToken, Instrument: SumDelta,
		Description: "Tokens decoded: one for each decode request and forward pass (speculative extras are not on the wire).",
	},
}

// EndpointUp is the metric of an endpoint, not of a worker.
var EndpointUp = Metric{
	Name: MetricEndpointUp, Instrument: GaugeInt,
	Description: "1 when the endpoint is connected and was heard within stale_after, else 0.",
}

// Gauges is the number of gauges at the head of Metrics.
const Gauges = 13

// IsGauge reports that the metric is a gauge of a wire field.
func (m *Metric) IsGauge() bool { return m.count != nil || m.value != nil }

// Count gives access to the int field that a GaugeInt metric carries, nil for
// any other metric.
func (m *Metric) Count(r *Record) *int64 {
	if m.count == nil {
		return nil
	}
	return m.count(r)
}

// Value gives access to the float field that a GaugeDouble metric carries, nil
// for any other metric.
func (m *Metric) Value(r *Record) *float64 {
	if m.value == nil {
		return nil
	}
	return m.value(r)
}

func countGauge(name, unit, group, key, description string, field func(*Record) *int64) Metric {
	return Metric{
		Name: name, Unit: unit, Description: description,
		Instrument: GaugeInt, Field: group + "." + key, count: field,
	}
}

func valueGauge(name, unit, group, key, description string, field func(*Record) *float64) Metric {
	return Metric{
		Name: name, Unit: unit, Description: description,
		Instrument: GaugeDouble, Field: group + "." + key, value: field,
	}
}
