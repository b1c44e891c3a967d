// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Completeness says whether the metrics of a forward pass make a record.
type Completeness int

const (
	// Complete: every gauge, fpm.messages and both delta token sums are there,
	// each once.
	Complete Completeness = iota
	// Incomplete: some are missing, or there twice.
	Incomplete
	// Folded: some were added up over several passes, as gauge_dedup does and the
	// fpm receiver with gauge_interval (cumulative temporality, a duration that is
	// not of one observation, or token sums that are not the gauges').
	Folded
)

// Rebuilt is what the metrics of one call say of one forward pass: the points
// that share resource, rank and time.
type Rebuilt struct {
	Source Source
	// Record is whole only when the pass is Complete. It has no Payload.
	Record Record
	// Time is the observation time.
	Time pcommon.Timestamp

	ranked bool
	folded bool
	double bool
	seen   uint32
	// Of the delta sums.
	prefillTokens, decodeTokens int64
}

// neededSlots are the metrics without which there is no record. A pass without
// a duration was not timed.
const neededSlots = 1<<Gauges - 1 | 1<<slotMessages | 1<<slotPrefillTokens | 1<<slotDecodeTokens

// Completeness says whether the record may be used.
func (p *Rebuilt) Completeness() Completeness {
	switch {
	case p.folded:
		return Folded
	case p.seen&neededSlots != neededSlots, p.double, !p.ranked:
		return Incomplete
	case p.prefillTokens != p.Record.Scheduled.SumPrefillTokens, p.decodeTokens != p.Record.Scheduled.NumDecodeRequests:
		return Folded
	default:
		return Complete
	}
}

// Missing says what keeps an incomplete pass from being complete, for an error.
func (p *Rebuilt) Missing() string {
	if !p.ranked {
		return "the attribute " + AttrDPRank
	}
	for slot := range Metrics {
		if missing := neededSlots &^ p.seen; missing&(1<<slot) != 0 {
			return "the metric " + Metrics[slot].Name
		}
	}
	return "a single point of each metric"
}

// Reconstructor rebuilds records from metrics. It reuses its buffers and
// belongs to one goroutine.
type Reconstructor struct {
	passes []Rebuilt
	index  map[passKey]int
	// source and workerID are those of the resource being read.
	source   Source
	workerID string
}

// passKey tells passes apart within a call.
type passKey struct {
	source   Source
	workerID string
	rank     RankAttributes
	ranked   bool
	time     pcommon.Timestamp
}

// NewReconstructor makes a Reconstructor.
func NewReconstructor() *Reconstructor {
	return &Reconstructor{index: map[passKey]int{}}
}

// Metrics returns the passes that the metrics describe, in the order in which
// they first appear; the slice is valid until the next call. What does not
// belong to a forward pass is passed over: foreign metrics, fpm.messages.lost,
// fpm.endpoint.up, points without a recorded value.
func (r *Reconstructor) Metrics(metrics pmetric.Metrics) []Rebuilt {
	clear(r.passes) // lets go of strings of the call before
	r.passes = r.passes[:0]
	clear(r.index)
	for _, resource := range metrics.ResourceMetrics().All() {
		r.source = SourceOf(resource.Resource())
		r.workerID = textAttribute(resource.Resource().Attributes(), AttrWorkerID)
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				if slot, ok := slotsByName[metric.Name()]; ok {
					r.metric(slot, metric)
				}
			}
		}
	}
	return r.passes
}

// slotsByName finds a metric's position in Metrics. Losses are no part of a
// forward pass.
var slotsByName = func() map[string]int {
	slots := make(map[string]int, slotCount)
	for slot := range Metrics {
		if slot != slotMessagesLost {
			slots[Metrics[slot].Name] = slot
		}
	}
	return slots
}()

// metric reads the points of one metric. The points of all metrics of a batch
// come in the same order, so that the pass of a point is nearly always the one
// behind the last point's.
func (r *Reconstructor) metric(slot int, metric pmetric.Metric) {
	next := 0
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		if slot >= Gauges {
			return
		}
		for _, point := range metric.Gauge().DataPoints().All() {
			if pass := r.numberPass(point, &next); pass != nil {
				pass.gauge(slot, point)
			}
		}
	case pmetric.MetricTypeSum:
		if slot != slotMessages && slot != slotPrefillTokens && slot != slotDecodeTokens {
			return
		}
		cumulative := metric.Sum().AggregationTemporality() == pmetric.AggregationTemporalityCumulative
		for _, point := range metric.Sum().DataPoints().All() {
			if pass := r.numberPass(point, &next); pass != nil {
				pass.sum(slot, point, cumulative)
			}
		}
	case pmetric.MetricTypeHistogram:
		cumulative := metric.Histogram().AggregationTemporality() == pmetric.AggregationTemporalityCumulative
		for _, point := range metric.Histogram().DataPoints().All() {
			if observes(slot, cumulative) && !point.Flags().NoRecordedValue() {
				pass := r.pass(point.Attributes(), point.Timestamp(), &next)
				pass.observation(slot, point.Count(), point.Sum(), cumulative)
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		cumulative := metric.ExponentialHistogram().AggregationTemporality() == pmetric.AggregationTemporalityCumulative
		for _, point := range metric.ExponentialHistogram().DataPoints().All() {
			if observes(slot, cumulative) && !point.Flags().NoRecordedValue() {
				pass := r.pass(point.Attributes(), point.Timestamp(), &next)
				pass.observation(slot, point.Count(), point.Sum(), cumulative)
			}
		}
	}
}

// observes tells the histograms that say something of a record: token
// latencies only say whether they were folded.
func observes(slot int, cumulative bool) bool {
	return slot == slotStepDuration || slot == slotDecodeTokenLatency && cumulative
}

func (r *Reconstructor) numberPass(point pmetric.NumberDataPoint, next *int) *Rebuilt {
	if point.Flags().NoRecordedValue() {
		return nil
	}
	return r.pass(point.Attributes(), point.Timestamp(), next)
}

// pass finds or adds the pass of a point. next is where it probably is, and is
// moved on.
func (r *Reconstructor) pass(attributes pcommon.Map, time pcommon.Timestamp, next *int) *Rebuilt {
	key := passKey{source: r.source, workerID: r.workerID, time: time}
	if rank, ok := attributes.Get(AttrDPRank); ok && rank.Type() == pcommon.ValueTypeInt {
		key.rank.DPRank, key.ranked = rank.Int(), true
	}
	if scope, ok := attributes.Get(AttrTimingScope); ok && scope.Type() == pcommon.ValueTypeStr {
		key.rank.TimingScope, key.rank.HasTimingScope = scope.Str(), true
	}
	if *next >= len(r.passes) || r.passes[*next].key() != key {
		i, ok := r.index[key]
		if !ok {
			i = len(r.passes)
			r.index[key] = i
			r.passes = append(r.passes, Rebuilt{
				Source: r.source, Time: time, ranked: key.ranked,
				Record: Record{
					WorkerID: r.workerID, DPRank: key.rank.DPRank,
					TimingScope: key.rank.TimingScope, HasTimingScope: key.rank.HasTimingScope,
				},
			})
		}
		*next = i
	}
	pass := &r.passes[*next]
	*next++
	return pass
}

func (p *Rebuilt) key() passKey {
	return passKey{source: p.Source, workerID: p.Record.WorkerID, rank: p.Record.Attributes(), ranked: p.ranked, time: p.Time}
}

// saw notes a point of a metric.
func (p *Rebuilt) saw(slot int) {
	p.double = p.double || p.seen&(1<<slot) != 0
	p.seen |= 1 << slot
}

func (p *Rebuilt) gauge(slot int, point pmetric.NumberDataPoint) {
	isInt := point.ValueType() == pmetric.NumberDataPointValueTypeInt
	if field := Metrics[slot].Count(&p.Record); field != nil {
		if !isInt {
			return
		}
		*field = point.IntValue()
	} else {
		value := point.DoubleValue()
		if isInt {
			value = float64(point.IntValue())
		}
		*Metrics[slot].Value(&p.Record) = value
	}
	p.saw(slot)
}

func (p *Rebuilt) sum(slot int, point pmetric.NumberDataPoint, cumulative bool) {
	if point.ValueType() != pmetric.NumberDataPointValueTypeInt {
		return
	}
	switch {
	case slot != slotMessages && cumulative:
		p.folded = true
	case slot == slotPrefillTokens:
		p.prefillTokens = point.IntValue()
		p.saw(slot)
	case slot == slotDecodeTokens:
		p.decodeTokens = point.IntValue()
		p.saw(slot)
	case cumulative: // a delta of the counter is not the counter
		p.Record.CounterID = point.IntValue()
		p.saw(slot)
	}
}

func (p *Rebuilt) observation(slot int, count uint64, sum float64, cumulative bool) {
	if cumulative || count != 1 {
		p.folded = true
		return
	}
	p.Record.WallTime = sum
	p.saw(slot)
}
