// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package shutdown

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWait(t *testing.T) {
	const never = time.Hour
	for name, test := range map[string]struct {
		deadline  time.Duration // 0 is none
		cancelled time.Duration // when ctx is, 0 is never
		// The component ends after work, or obeys its context after slow.
		work, slow time.Duration

		ended            bool
		took, cancelling time.Duration
	}{
		"ends at once":                       {ended: true},
		"ends in time":                       {work: 4 * time.Second, ended: true, took: 4 * time.Second, cancelling: 4 * time.Second},
		"obeys":                              {work: never, ended: true, took: 4500 * time.Millisecond, cancelling: 4500 * time.Millisecond},
		"obeys slowly":                       {work: never, slow: 400 * time.Millisecond, ended: true, took: 4900 * time.Millisecond, cancelling: 4500 * time.Millisecond},
		"hangs":                              {work: never, slow: never, took: Timeout, cancelling: 4500 * time.Millisecond},
		"hangs with a deadline":              {deadline: time.Second, work: never, slow: never, took: time.Second, cancelling: 900 * time.Millisecond},
		"hangs with a near deadline":         {deadline: 100 * time.Millisecond, work: never, slow: never, took: 100 * time.Millisecond, cancelling: 90 * time.Millisecond},
		"hangs with a far deadline":          {deadline: time.Minute, work: never, slow: never, took: Timeout, cancelling: 4500 * time.Millisecond},
		"ends by a deadline that is over":    {deadline: -time.Second, ended: true},
		"obeys a deadline that is over":      {deadline: -time.Second, work: never, slow: 20 * time.Millisecond, ended: true, took: 20 * time.Millisecond},
		"hangs with a deadline that is over": {deadline: -time.Second, work: never, slow: never, took: lateTime},
		"hangs, and nobody waits any more":   {cancelled: time.Second, work: never, slow: never, took: 1500 * time.Millisecond, cancelling: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				if test.deadline != 0 {
					ctx, stop = context.WithTimeout(ctx, test.deadline)
					defer stop()
				}
				if test.cancelled > 0 {
					time.AfterFunc(test.cancelled, stop)
				}
				deliver, cancel := context.WithCancel(t.Context())
				began := time.Now()
				var cancelling time.Duration
				context.AfterFunc(deliver, func() { cancelling = time.Since(began) })
				var running sync.WaitGroup
				running.Go(func() {
					select {
					case <-time.After(test.work):
					case <-deliver.Done():
						time.Sleep(test.slow)
					}
				})
				synctest.Wait()
				assert.Equal(t, test.ended, Wait(ctx, &running, cancel))
				assert.Equal(t, test.took, time.Since(began))
				synctest.Wait()
				assert.Error(t, deliver.Err())
				assert.Equal(t, test.cancelling, cancelling)
				running.Wait()
			})
		})
	}
}
