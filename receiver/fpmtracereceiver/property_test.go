// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// world is a directory that a writer and its disk change at random, and what a
// reader must make of it.
type world struct {
	*rand.Rand
	r        *rig
	producer string
	next     int64 // counter
	segment  int
	// tail is the rest of a member whose beginning is written already, and held
	// its rows.
	tail []byte
	held []int64
	want []int64
	// skipped is what cannot be read, in bytes; torn what will be so once a later
	// segment exists.
	skipped, torn int64
	bad           int64
}

func (w *world) text() (string, []int64) {
	from := w.next
	w.next += 1 + w.Int64N(40)
	text := rowsOf(w.producer, from, w.next)
	if w.IntN(8) == 0 {
		text += "no row\n"
		w.bad++
	}
	return text, span(from, w.next)
}

// step changes something.
func (w *world) step() {
	path := w.r.path(w.producer, w.segment)
	if w.tail != nil {
		switch w.IntN(3) {
		case 0: // a bit more
			n := 1 + w.IntN(len(w.tail))
			w.r.appendBytes(path, w.tail[:n])
			w.torn += int64(n)
			w.tail = w.tail[n:]
			if len(w.tail) == 0 {
				w.want, w.tail, w.torn = append(w.want, w.held...), nil, 0
			}
		case 1: // the rest
			w.r.appendBytes(path, w.tail)
			w.want, w.tail, w.torn = append(w.want, w.held...), nil, 0
		default: // the writer was killed, and begins a new segment
			w.tail = nil
			w.roll()
		}
		return
	}
	switch w.IntN(8) {
	case 0:
		w.roll()
	case 1: // a member comes in parts
		bad := w.bad
		text, rows := w.text()
		w.bad = bad // counted only when it is whole
		if text[len(text)-2] == 'w' {
			text = rowsOf(w.producer, rows[0], w.next)
		}
		member := pack(w.r.t, text)
		n := 1 + w.IntN(len(member)-1)
		w.r.appendBytes(path, member[:n])
		w.torn, w.tail, w.held = int64(n), member[n:], rows
	case 2: // damaged on the disk, with a good one behind it
		bad := w.bad
		text, _ := w.text()
		w.bad = bad
		member := pack(w.r.t, text)
		member[len(member)-1-w.IntN(8)] ^= 1 << w.IntN(8)
		w.skipped += int64(len(member))
		good, rows := w.text()
		w.r.appendBytes(path, append(member, pack(w.r.t, good)...))
		w.want = append(w.want, rows...)
	default:
		text, rows := w.text()
		w.r.append(path, text)
		w.want = append(w.want, rows...)
	}
}

// roll begins a new segment with a whole member.
func (w *world) roll() {
	w.skipped += w.torn
	w.torn = 0
	w.segment++
	text, rows := w.text()
	w.r.append(w.r.path(w.producer, w.segment), text)
	w.want = append(w.want, rows...)
	// The oldest go, which were read long ago.
	if w.segment >= 3 {
		_ = os.Remove(w.r.path(w.producer, w.segment-3))
	}
}

// TestRandomWorlds: whatever writers and disks do, what verifies arrives once and
// in order, on both signals, and every other byte and line is counted.
func TestRandomWorlds(t *testing.T) {
	for seed := range uint64(15) {
		t.Run(fmt.Sprint("seed_", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 2))
				r := newRig(t, nil)
				fate := rand.New(rand.NewPCG(seed, 3)) // the reader's goroutine's
				refuse := func(int) error {
					if fate.IntN(10) == 0 {
						return errNotNow
					}
					return nil
				}
				r.metrics.answer, r.logs.answer = refuse, refuse
				var worlds []*world
				for i := range 3 {
					worlds = append(worlds, &world{Rand: random, r: r, producer: fmt.Sprint("p", i)})
				}
				r.start()
				for range 60 {
					for range random.IntN(4) {
						worlds[random.IntN(len(worlds))].step()
						synctest.Wait() // what was read depends on the poll only
					}
					// Files are looked at between the steps of a writer, not during them.
					time.Sleep(r.cfg.PollInterval * time.Duration(2+random.IntN(2)))
					synctest.Wait()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				var skipped, bad int64
				for _, w := range worlds {
					require.Equal(t, w.want, r.logs.of(w.producer))
					require.Equal(t, w.want, r.metrics.of(w.producer))
					skipped += w.skipped
					bad += w.bad
				}
				require.Equal(t, skipped, r.sum("skipped_bytes"))
				require.Equal(t, bad, r.sum("rejected", "malformed"))
				r.stop()
			})
		})
	}
}
