// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/otelcol-fpm/otelcol-fpm/cmd/fpmsim/internal/load"
	"github.com/otelcol-fpm/otelcol-fpm/cmd/fpmsim/internal/wire"
)

const (
	// heartbeatInterval is the time without a message after which engines send
	// a heartbeat.
	heartbeatInterval = time.Second
	// drainTime is what subscribers get at the end to take what is queued.
	drainTime = time.Second
	// maxLag is how far passes may lag behind their rate and still catch up.
	maxLag = time.Second
	// rateSpread is how far ranks are from the rate, relative, so that their
	// counters drift apart.
	rateSpread = 0.03
)

// endpoint is a bound publisher.
type endpoint interface {
	Publish(sequence uint64, payload []byte)
	Dropped() uint64
	Close(timeout time.Duration) error
}

// rank is one data-parallel rank and its publisher. It takes its time from the
// engine model, never from another rank.
type rank struct {
	number   int
	options  *options
	listen   func() (endpoint, error)
	out      endpoint
	engine   *load.Engine
	interval time.Duration
	faults   schedule

	// sequence is that of the next message; it starts over with the publisher.
	sequence uint64
	// published counts messages over all restarts, dropped those of them that a
	// subscriber did not get.
	published, dropped uint64

	last    time.Time // of the last message, or the start
	due     time.Time // of the next pass
	payload []byte
}

// newRank binds the endpoint of a rank.
func newRank(o *options, number int, listen func() (endpoint, error)) (*rank, error) {
	out, err := listen()
	if err != nil {
		return nil, err
	}
	spread := rand.New(rand.NewPCG(^o.seed, uint64(number)))
	rate := o.rate * (1 + rateSpread*(2*spread.Float64()-1))
	return &rank{
		number: number, options: o, listen: listen, out: out,
		engine:   load.NewEngine(o.profile, o.seed, number),
		interval: time.Duration(float64(time.Second) / rate),
	}, nil
}

// run publishes until ctx ends or the number of messages is reached, and gives
// the subscribers a moment to take them.
func (r *rank) run(ctx context.Context) error {
	defer func() { r.close(drainTime) }()
	if !sleep(ctx, time.Now().Add(r.options.startDelay)) {
		return nil
	}
	r.last, r.due = time.Now(), time.Now()
	r.faults = newSchedule(r.options.faults, r.last)
	for ctx.Err() == nil && !r.finished() {
		if f := r.faults.due(time.Now()); f != "" {
			if err := r.suffer(ctx, f); err != nil {
				return err
			}
			continue
		}
		step := r.engine.Step()
		if step.Idle > 0 {
			r.wait(ctx, r.faults.before(time.Now().Add(step.Idle)))
			r.due = time.Now()
			continue
		}
		r.pass(ctx, step.Pass, r.interval)
	}
	return nil
}

// pass runs a forward pass of the given length and publishes its record.
func (r *rank) pass(ctx context.Context, p load.Pass, length time.Duration) {
	r.due = r.due.Add(length)
	if now := time.Now(); now.Sub(r.due) > maxLag {
		r.due = now
	}
	if r.wait(ctx, r.due) {
		r.publish(p)
	}
}

// suffer lets a fault happen.
func (r *rank) suffer(ctx context.Context, f fault) error {
	switch f {
	case gap:
		r.sequence += gapMessages
	case silence:
		sleep(ctx, time.Now().Add(silenceTime))
	case heartbeatMidPass:
		step := r.engine.Step()
		for step.Idle > 0 {
			step = r.engine.Step()
		}
		step.Pass.WallTime = longPass.Seconds()
		r.due = time.Now()
		r.pass(ctx, step.Pass, longPass)
	case restart:
		r.close(0)
		if !sleep(ctx, time.Now().Add(restartTime)) {
			return nil
		}
		out, err := r.listen()
		if err != nil {
			return err
		}
		r.out, r.sequence = out, 0
		r.engine = load.NewEngine(r.options.profile, r.options.seed, r.number)
	}
	r.due = time.Now()
	return nil
}

// close ends the publisher, which may be closed already.
func (r *rank) close(timeout time.Duration) {
	if r.out != nil {
		_ = r.out.Close(timeout)
		r.dropped += r.out.Dropped()
		r.out = nil
	}
}

// wait sleeps until end, with heartbeats when nothing else is sent. It reports
// whether the rank goes on.
func (r *rank) wait(ctx context.Context, end time.Time) bool {
	for !r.finished() {
		beat := r.last.Add(heartbeatInterval)
		if !beat.Before(end) {
			return sleep(ctx, end)
		}
		if !sleep(ctx, beat) {
			return false
		}
		r.publish(load.Pass{})
	}
	return false
}

func (r *rank) finished() bool {
	return r.options.messages > 0 && r.published >= r.options.messages
}

func (r *rank) publish(p load.Pass) {
	r.payload = wire.AppendMessage(r.payload[:0], &wire.Message{
		WorkerID: r.options.workerID, DPRank: r.number, CounterID: r.sequence, Pass: p,
	})
	r.out.Publish(r.sequence, r.payload)
	r.sequence++
	r.published++
	r.last = time.Now()
}

// sleep reports whether it lasted until end; ctx may end it before.
func sleep(ctx context.Context, end time.Time) bool {
	d := time.Until(end)
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
