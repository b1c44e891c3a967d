// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// secondBounds are as many bounds as a real histogram has.
var secondBounds = []float64{
	0.002, 0.004, 0.006, 0.008, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05,
	0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2.5, 5, 10,
}

func forms() map[string]*HistogramForm {
	return map[string]*HistogramForm{"explicit": ExplicitForm(secondBounds), "exponential": ExponentialForm(160)}
}

func BenchmarkDecode(b *testing.B) {
	payload := fixture(b, "dynamo_vllm_v1")
	decoder := NewDecoder(true)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decoder.Decode(payload, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	record := decodeValid(b, fixture(b, "dynamo_vllm_v1"))
	writer := NewBodyWriter()
	b.ReportAllocs()
	for b.Loop() {
		writer.Fill(pcommon.NewMap(), &record)
	}
}

func BenchmarkPass(b *testing.B) {
	record := decodeValid(b, fixture(b, "dynamo_vllm_v1"))
	for name, form := range forms() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			// A batch of 100 passes, as the receiver makes them.
			const batch = 100
			links := Links{Began: began}
			time := began
			for b.Loop() {
				worker := NewWorkerMetrics(pmetric.NewScopeMetrics(), form, batch)
				for range batch {
					time += ms
					worker.Pass(Pass{Record: &record, Time: time, CounterStart: began}, &links)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/pass")
		})
	}
}

// What one message may allocate. pdata sets the floor: each of the 20 values of
// a body is one allocation; each of the 18 points of a pass four (the point, its
// value, the list of attributes, an attribute).
func TestAllocationBudgets(t *testing.T) {
	const fillBudget, passBudget = 30, 76
	record := decodeValid(t, fixture(t, "dynamo_vllm_v1"))
	writer := NewBodyWriter()
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		writer.Fill(pcommon.NewMap(), &record)
	}), float64(fillBudget), "Fill")

	for name, form := range forms() {
		const passes = 100
		worker := NewWorkerMetrics(pmetric.NewScopeMetrics(), form, passes+1)
		links, time := Links{Began: began}, began
		assert.LessOrEqual(t, testing.AllocsPerRun(passes, func() {
			time += ms
			worker.Pass(Pass{Record: &record, Time: time, CounterStart: began}, &links)
		}), float64(passBudget), "Pass, %s", name)
	}
}
