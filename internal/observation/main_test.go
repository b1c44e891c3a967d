// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rounds runs a property with many seeds; the seed of a failure is in its name.
func rounds(t *testing.T, n int, property func(*testing.T, *rand.Rand)) {
	t.Helper()
	for seed := range n {
		ok := t.Run(fmt.Sprintf("seed_%d", seed), func(t *testing.T) {
			property(t, rand.New(rand.NewPCG(uint64(seed), 0)))
		})
		if !ok {
			return
		}
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
