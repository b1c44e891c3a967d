// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmbenchmarkreceiver/internal/metadata"
)

// gauge is one metric.
type gauge struct {
	name, unit, description string
	// whole: its values are integers.
	whole bool
}

// The metrics of a point and rank.
var pointGauges = []struct {
	gauge
	value func(p *benchmark.Point) (float64, bool)
	// put adds attributes beside the point's coordinates; it may be nil.
	put func(attributes pcommon.Map, p *benchmark.Point)
}{
	{
		gauge: gauge{
			name: "fpm.benchmark.step.duration", unit: "s",
			description: "Duration of the step by the scheduler's clock, as the benchmark reduced its samples. Not GPU time.",
		},
		value: func(p *benchmark.Point) (float64, bool) { return valueOf(p.WallTime) },
	},
	{
		gauge: gauge{
			name: "fpm.benchmark.tokens_per_second", unit: "{token}/s",
			description: "Prefill tokens of the point, for decode its batch size, over the step's duration by the scheduler's clock.",
		},
		value: (*benchmark.Point).TokensPerSecond,
	},
	{
		gauge: gauge{
			name: "fpm.benchmark.sample.min", unit: "s",
			description: "Shortest of the samples that the step's duration was made of, by the scheduler's clock. Not GPU time.",
		},
		value: func(p *benchmark.Point) (float64, bool) {
			if p.Samples == nil {
				return 0, false
			}
			return p.Samples.Min, true
		},
	},
	{
		gauge: gauge{
			name: "fpm.benchmark.sample.max", unit: "s",
			description: "Longest of the samples that the step's duration was made of, by the scheduler's clock. Not GPU time.",
		},
		value: func(p *benchmark.Point) (float64, bool) {
			if p.Samples == nil {
				return 0, false
			}
			return p.Samples.Max, true
		},
	},
	{
		gauge: gauge{
			name: "fpm.benchmark.padding", unit: "{token}", whole: true,
			description: "Padding that the grid expected of the step's graph.",
		},
		value: func(p *benchmark.Point) (float64, bool) { return wholeOf(p.ExpectedPadding) },
	},
	{
		gauge: gauge{
			name: "fpm.benchmark.observed.padding", unit: "{token}", whole: true,
			description: "Padding of the dispatch that was observed for all samples that the step's duration was made of. No point where it was not observed or not the same.",
		},
		value: func(p *benchmark.Point) (float64, bool) {
			if p.Observed == nil {
				return 0, false
			}
			return float64(p.Observed.Paddings), true
		},
		put: func(attributes pcommon.Map, p *benchmark.Point) {
			attributes.PutStr("fpm.benchmark.observed_cudagraph_mode", p.Observed.Mode)
		},
	},
}

// The metrics of a run.
var runGauges = []struct {
	gauge
	value func(run *benchmark.Run) (float64, bool)
}{
	{
		gauge: gauge{
			name: "fpm.benchmark.coverage.expected", unit: "{point}", whole: true,
			description: "Points that were to be measured, each once for each rank.",
		},
		value: func(run *benchmark.Run) (float64, bool) {
			if run.Coverage == nil {
				return 0, false
			}
			return float64(run.Coverage.Expected), true
		},
	},
	{
		gauge: gauge{
			name: "fpm.benchmark.coverage.completed", unit: "{point}", whole: true,
			description: "Points that were measured, each once for each rank.",
		},
		value: func(run *benchmark.Run) (float64, bool) {
			if run.Coverage == nil {
				return 0, false
			}
			return float64(run.Coverage.Completed), true
		},
	},
	{
		gauge: gauge{name: "fpm.benchmark.elapsed", unit: "s", description: "How long the slowest rank's benchmark took."},
		value: func(run *benchmark.Run) (float64, bool) { return valueOf(run.Elapsed) },
	},
	{
		gauge: gauge{
			name: "fpm.benchmark.valid", whole: true,
			description: "1 when no rule is violated and no rank is missing, else 0. Whether the benchmark called itself valid is another thing.",
		},
		value: func(run *benchmark.Run) (float64, bool) {
			if run.Valid {
				return 1, true
			}
			return 0, true
		},
	},
}

func valueOf(value *float64) (float64, bool) {
	if value == nil {
		return 0, false
	}
	return *value, true
}

func wholeOf(value *int64) (float64, bool) {
	if value == nil {
		return 0, false
	}
	return float64(*value), true
}

// metricsTable is the table of metrics in the README.
func metricsTable() string {
	var text strings.Builder
	text.WriteString("| metric | unit | meaning |\n|---|---|---|\n")
	row := func(g *gauge) {
		unit := ""
		if g.unit != "" {
			unit = "`" + g.unit + "`"
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s |\n", g.name, unit, g.description)
	}
	for i := range pointGauges {
		row(&pointGauges[i].gauge)
	}
	for i := range runGauges {
		row(&runGauges[i].gauge)
	}
	return text.String()
}

// maxBatchPoints is how many points × ranks one batch of metrics has at most.
const maxBatchPoints = 500

// sendMetrics hands on the batches from number from on: the run's own metrics,
// then those of its points.
func (r *benchmarkReceiver) sendMetrics(ctx context.Context, run *trackedRun, s *source, from int) error {
	batch := 0
	send := func(build func(scope pmetric.ScopeMetrics)) error {
		if batch++; batch <= from {
			return nil
		}
		metrics := pmetric.NewMetrics()
		resource := metrics.ResourceMetrics().AppendEmpty()
		s.resource.CopyTo(resource.Resource())
		scope := resource.ScopeMetrics().AppendEmpty()
		s.setScope(scope.Scope())
		build(scope)
		if metrics.DataPointCount() == 0 {
			return r.took(run, signalMetrics, nil)
		}
		operation := r.report.StartMetricsOp(ctx)
		points := metrics.DataPointCount() // a consumer may change the data
		err := r.metrics.ConsumeMetrics(operation, metrics)
		r.report.EndMetricsOp(operation, metadata.Type.String(), points, err)
		return r.took(run, signalMetrics, err)
	}
	if err := send(s.runMetrics); err != nil {
		return err
	}
	points := uniquePoints(s.run.Points)
	for len(points) > 0 {
		some := points[:min(len(points), maxBatchPoints)]
		points = points[len(some):]
		if err := send(func(scope pmetric.ScopeMetrics) { s.pointMetrics(scope, some) }); err != nil {
			return err
		}
	}
	return nil
}

// uniquePoints leaves out what would be a second point of the same series and
// time: a violated run may have an id twice.
func uniquePoints(points []benchmark.Point) []benchmark.Point {
	unique := make([]benchmark.Point, 0, len(points))
	for i := range points {
		if last := len(unique) - 1; last < 0 || unique[last].ID != points[i].ID || unique[last].Rank != points[i].Rank {
			unique = append(unique, points[i])
		}
	}
	return unique
}

func (s *source) runMetrics(scope pmetric.ScopeMetrics) {
	for i := range runGauges {
		g := &runGauges[i]
		if value, ok := g.value(s.run); ok {
			s.add(g.appendTo(scope), g.whole, value)
		}
	}
}

func (s *source) pointMetrics(scope pmetric.ScopeMetrics, points []benchmark.Point) {
	for i := range pointGauges {
		g := &pointGauges[i]
		var data pmetric.NumberDataPointSlice
		empty := true
		for j := range points {
			value, ok := g.value(&points[j])
			if !ok {
				continue
			}
			if empty {
				data, empty = g.appendTo(scope), false
			}
			attributes := s.add(data, g.whole, value).Attributes()
			putPoint(attributes, &points[j])
			if g.put != nil {
				g.put(attributes, &points[j])
			}
		}
	}
}

func (g *gauge) appendTo(scope pmetric.ScopeMetrics) pmetric.NumberDataPointSlice {
	metric := scope.Metrics().AppendEmpty()
	metric.SetName(g.name)
	metric.SetUnit(g.unit)
	metric.SetDescription(g.description)
	return metric.SetEmptyGauge().DataPoints()
}

func (s *source) add(data pmetric.NumberDataPointSlice, whole bool, value float64) pmetric.NumberDataPoint {
	point := data.AppendEmpty()
	point.SetTimestamp(s.time)
	if whole {
		point.SetIntValue(int64(value))
	} else {
		point.SetDoubleValue(value)
	}
	return point
}
