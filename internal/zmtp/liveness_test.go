// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLiveness(t *testing.T) {
	const stale = 5 * time.Second
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }

	// Steps are what the owner of a liveness does: bytes that come, and deadlines that pass.
	type step struct {
		at   float64 // seconds after the handshake
		what string  // "byte" (of a command), "begin", "end", or "expire"
		want verdict // of expire
		next float64 // deadline expire returns
	}
	const look = 0.05
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"a silent peer is pinged, then given up", []step{
			{5, "expire", verdictPing, 10},
			{10, "expire", verdictWait, 10 + look},
			{10 + look, "expire", verdictSilent, 0},
		}},
		{"an answer saves it for another round", []step{
			{5, "expire", verdictPing, 10},
			{5.001, "byte", 0, 0},
			{10, "expire", verdictPing, 15},
			{14.999, "byte", 0, 0},
			{15, "expire", verdictPing, 20},
		}},
		{"an answer in the same instant is one", []step{
			{5, "expire", verdictPing, 10},
			{5, "byte", 0, 0},
			{10, "expire", verdictPing, 15},
		}},
		{"an answer in the last look is one", []step{
			{5, "expire", verdictPing, 10},
			{10, "expire", verdictWait, 10 + look},
			{10.01, "byte", 0, 0},
			{10 + look, "expire", verdictPing, 15 + look},
		}},
		{"messages move the deadline when it passes", []step{
			{1, "begin", 0, 0},
			{1, "end", 0, 0},
			{4, "begin", 0, 0},
			{4, "end", 0, 0},
			{5, "expire", verdictWait, 9},
			{9, "expire", verdictPing, 14},
		}},
		{"commands are signs of life, no messages", []step{
			{4, "byte", 0, 0},
			{5, "expire", verdictPing, 10},
			{9, "byte", 0, 0},
			{10, "expire", verdictPing, 15},
		}},
		{"a message has staleAfter from its first byte", []step{
			{4, "begin", 0, 0},
			{5, "expire", verdictWait, 9},
			{8, "byte", 0, 0},
			{9, "expire", verdictWait, 9 + look},
			{9.01, "byte", 0, 0},
			{9 + look, "expire", verdictStalled, 0},
		}},
		{"its first byte is not moved by later ones", []step{
			{4, "begin", 0, 0},
			{8, "begin", 0, 0},
			{9, "expire", verdictWait, 9 + look},
		}},
		{"a message whole in the last look is whole", []step{
			{4, "begin", 0, 0},
			{9, "expire", verdictWait, 9 + look},
			{9.01, "end", 0, 0},
			{9 + look, "expire", verdictWait, 14.01},
		}},
		{"the next message after a last look has its own time", []step{
			{4, "begin", 0, 0},
			{9, "expire", verdictWait, 9 + look},
			{9.01, "end", 0, 0},
			{9.02, "begin", 0, 0},
			{9 + look, "expire", verdictWait, 14.02},
			{14.02, "expire", verdictWait, 14.02 + look},
			{14.02 + look, "expire", verdictStalled, 0},
		}},
		{"a message answers a PING", []step{
			{5, "expire", verdictPing, 10},
			{6, "byte", 0, 0},
			{6, "begin", 0, 0},
			{6.5, "end", 0, 0},
			{10, "expire", verdictWait, 11.5},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := liveness{staleAfter: stale}
			require.Equal(t, at(5), l.start(at(0)))
			for i, s := range tt.steps {
				switch s.what {
				case "byte":
					l.heard()
				case "begin":
					l.heard()
					l.begin(at(s.at))
				case "end":
					l.heard()
					l.end(at(s.at))
				default:
					v, next := l.expire(at(s.at))
					require.Equal(t, s.want, v, "step %d", i)
					if s.want == verdictWait || s.want == verdictPing {
						require.WithinDuration(t, at(s.next), next, time.Microsecond, "step %d", i)
					} else {
						require.True(t, next.IsZero())
					}
				}
			}
		})
	}
}

// Random peers against the rules of the design, computed from the whole history at every instant.
func TestDeadlineIsNeverLate(t *testing.T) {
	const (
		stale = time.Second
		tick  = 10 * time.Millisecond
	)
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		now := time.Unix(0, 0)
		l := liveness{staleAfter: stale}
		deadline := l.start(now)
		lastMessage, lastPing, lastByte := now, time.Time{}, now
		var begun time.Time
		quiet := 1 + rnd.IntN(300)
		for range 3000 {
			now = now.Add(tick)
			if rnd.IntN(quiet) == 0 {
				lastByte = now
				l.heard()
				switch {
				case rnd.IntN(4) == 0: // a command, in a message or not
				case begun.IsZero():
					begun = now
					l.begin(now)
				default:
					begun, lastMessage = time.Time{}, now
					l.end(now)
				}
			}

			// What must have happened by now?
			var due time.Time
			switch {
			case !begun.IsZero():
				due = begun.Add(stale)
			case lastPing.After(lastMessage):
				due = lastPing.Add(stale)
			default:
				due = lastMessage.Add(stale)
			}
			require.False(t, deadline.After(maxTime(due, now).Add(lastLook)), "seed %d: deadline %v, due %v", seed, deadline, due)

			if now.Before(deadline) {
				continue
			}
			v, next := l.expire(now)
			switch v {
			case verdictWait:
			case verdictPing:
				require.True(t, begun.IsZero() && !now.Before(due), "seed %d: a PING too early", seed)
				lastPing = now
			case verdictSilent:
				require.GreaterOrEqual(t, now.Sub(lastByte), stale, "seed %d", seed)
				require.GreaterOrEqual(t, now.Sub(lastMessage), 2*stale, "seed %d", seed)
				require.True(t, begun.IsZero())
			case verdictStalled:
				require.GreaterOrEqual(t, now.Sub(begun), stale, "seed %d", seed)
				require.LessOrEqual(t, now.Sub(begun), stale+lastLook+2*tick, "seed %d", seed)
			}
			if next.IsZero() {
				break
			}
			require.True(t, next.After(now))
			deadline = next
		}
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
