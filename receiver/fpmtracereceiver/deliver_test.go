// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// TestRefusedForNow: a consumer that refuses holds up reading, however long, and
// gets every row once.
func TestRefusedForNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.metrics.answer = func(int) error { return errNotNow }
		r.append(r.path("p", 0), rows(0, 10), rows(10, 20))
		r.start()
		time.Sleep(time.Hour)
		assert.Zero(t, r.metrics.total())
		r.expectLogs("p", nil) // the order is metrics, logs
		assert.Greater(t, r.metrics.calls, 100)
		said := r.messages("refused rows for now")
		require.NotEmpty(t, said)
		assert.LessOrEqual(t, len(said), 361, "at most one line in ten seconds")
		r.metrics.will(nil)
		r.settle()
		time.Sleep(maxRetry * 2)
		r.expect("p", span(0, 20))
		r.stop()
	})
}

func (r *rig) expectLogs(producer string, counters []int64) {
	r.t.Helper()
	assert.Equal(r.t, counters, r.logs.of(producer))
}

// TestRefusedForGood: the rows of the batch are dropped for that signal and
// counted; the other signal has them, and reading goes on.
func TestRefusedForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.metrics.answer = func(call int) error {
			if call == 2 {
				return consumererror.NewPermanent(errors.New("no"))
			}
			return nil
		}
		r.append(r.path("p", 0), rows(0, 10), rows(10, 20), rows(20, 30))
		r.start()
		r.settle()
		assert.Equal(t, append(span(0, 10), span(20, 30)...), r.metrics.of("p"))
		r.expectLogs("p", span(0, 30))
		assert.Equal(t, int64(10), r.sum("dropped", "metrics", "refused"))
		r.stop()
	})
}

// TestOnlyDeliveredPointsLinkTheNext: deltas are contiguous over what was
// delivered, not over what was refused on the way.
func TestOnlyDeliveredPointsLinkTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.metrics.answer = func(call int) error {
			switch call {
			case 2, 3, 6:
				return errNotNow
			case 5:
				return consumererror.NewPermanent(errors.New("no"))
			}
			return nil
		}
		for from := int64(0); from < 50; from += 10 {
			r.append(r.path("p", 0), rows(from, from+10))
		}
		r.start()
		r.settle()
		r.stop()
		require.Equal(t, append(span(0, 20), span(30, 50)...), r.metrics.of("p"))
		points := pointsOf(r, "p")
		for _, name := range []string{fpm.MetricDecodeTokens, fpm.MetricPrefillTokens, fpm.MetricStepDuration} {
			times, starts := points.times[name], points.starts[name]
			require.Len(t, times, 40)
			assert.Equal(t, times[:39], starts[1:], name)
		}
		starts := points.starts[fpm.MetricMessages]
		assert.Equal(t, starts[0], last2(starts), "the counter goes on")
	})
}

func last2(times []pcommon.Timestamp) pcommon.Timestamp { return times[len(times)-1] }
