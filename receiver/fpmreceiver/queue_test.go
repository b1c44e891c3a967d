// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// Random pushes, takes and restores against a plain slice.
func TestQueueKeepsItsBounds(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		maxMessages, maxBytes := 1+random.IntN(40), int64(1+random.IntN(2000))
		q := newQueue(maxMessages, maxBytes, 1+random.IntN(50))
		var model, batch []*message
		bytes := func() (n int64) {
			for _, m := range model {
				n += m.size()
			}
			return n
		}
		for range 2000 {
			switch random.IntN(4) {
			case 0, 1:
				m := &message{record: fpm.Record{Payload: make([]byte, random.Int64N(maxBytes+1))}}
				var want []*message
				for len(model) > 0 && (len(model) >= maxMessages || bytes()+m.size() > maxBytes) {
					want, model = append(want, model[0]), model[1:]
				}
				model = append(model, m)
				require.Equal(t, want, q.push(m))
			case 2:
				n, limit := 1+random.IntN(50), random.Int64N(maxBytes)
				batch = q.take(nil, n, limit)
				require.True(t, slices.Equal(model[:len(batch)], batch))
				model = model[len(batch):]
			case 3:
				out := q.restore(batch)
				kept := batch[len(out):]
				require.True(t, slices.Equal(batch[:len(out)], out))
				if len(out) > 0 {
					last := out[len(out)-1]
					require.True(t, len(model)+len(kept) == maxMessages || bytes()+sizes(kept)+last.size() > maxBytes, "no more dropped than needed")
				}
				model = append(append([]*message{}, kept...), model...)
				batch = nil
			}
			require.Equal(t, len(model), q.length())
			require.LessOrEqual(t, q.length(), maxMessages)
			require.LessOrEqual(t, bytes(), maxBytes)
			require.Equal(t, bytes(), q.bytes)
			require.Equal(t, q.whole(), len(model) >= q.wholeMessages || bytes() >= q.wholeBytes)
		}
	}
}

func sizes(messages []*message) (n int64) {
	for _, m := range messages {
		n += m.size()
	}
	return n
}
