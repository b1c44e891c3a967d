// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// sink is a consumer that remembers what it took.
type sink struct {
	mu sync.Mutex
	// answer, if any, is asked before a batch is taken, with the number of the
	// call.
	answer func(call int) error
	calls  int
	// counters are those of the rows taken, by producer, and order the producers
	// of the rows.
	counters map[string][]int64
	allLogs  []plog.Logs
	all      []pmetric.Metrics
}

func (s *sink) asked() error {
	s.mu.Lock()
	s.calls++
	call, answer := s.calls, s.answer
	s.mu.Unlock()
	if answer != nil {
		return answer(call)
	}
	return nil
}

// will changes the answer of a sink that is in use.
func (s *sink) will(answer func(call int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *sink) took(producer string, counter int64) {
	if s.counters == nil {
		s.counters = map[string][]int64{}
	}
	s.counters[producer] = append(s.counters[producer], counter)
}

// of are the counters of a producer's rows, in the order in which they came.
func (s *sink) of(producer string) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters[producer]
}

func (s *sink) total() (rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, counters := range s.counters {
		rows += len(counters)
	}
	return rows
}

func (s *sink) logs(t testing.TB) consumer.Logs {
	next, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
		if err := s.asked(); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.allLogs = append(s.allLogs, logs)
		for _, resource := range logs.ResourceLogs().All() {
			producer := fpm.SourceOf(resource.Resource()).ProducerID
			for _, scope := range resource.ScopeLogs().All() {
				for _, entry := range scope.LogRecords().All() {
					counter, _ := entry.Body().Map().Get("counter_id")
					s.took(producer, counter.Int())
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	return next
}

func (s *sink) metrics(t testing.TB) consumer.Metrics {
	next, err := consumer.NewMetrics(func(_ context.Context, metrics pmetric.Metrics) error {
		if err := s.asked(); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, metrics)
		for _, resource := range metrics.ResourceMetrics().All() {
			producer := fpm.SourceOf(resource.Resource()).ProducerID
			for _, scope := range resource.ScopeMetrics().All() {
				for _, metric := range scope.Metrics().All() {
					if metric.Name() == fpm.MetricMessages {
						for _, point := range metric.Sum().DataPoints().All() {
							s.took(producer, point.IntValue())
						}
					}
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	return next
}
