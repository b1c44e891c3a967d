// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// folded is a series of delta points that are added up.
type folded[S any] struct {
	state S
	// open is 1 + the index of the point that goes on for the series in this batch, 0 outside of a batch.
	open int
}

// machine is what the state machines of observation have in common: S takes points P.
type machine[P, S any] interface {
	*S
	Conflict(*P) observation.Restart
	Begin(*P)
	Resume()
	Fold(*P)
	Close() P
	CopyFrom(*S)
}

// checked is a point that knows whether it is fit to be added.
type checked[P any] interface {
	*P
	Check() *observation.Rejection
}

// pdataPoints reads and writes the points of one kind of metric: D is pdata's point.
type pdataPoints[P, S, D any] interface {
	newState() S
	read(D, *P)
	write(D, *P)
	flags(D) pmetric.DataPointFlags
	exemplars(D) pmetric.ExemplarSlice
}

// verdict is what becomes of a delta point.
type verdict int

const (
	// drop: it is part of another point, or not fit.
	drop verdict = iota
	// keep: it is the point that goes on for its series.
	keep
	// asItCame: there is no room for its series.
	asItCame
)

// fold adds the delta points of a batch to the series of one kind.
//
// Invariant OnePointASeries: each series that was added to has one outgoing point, where its first point was. A series
// that begins anew within the batch has one for each start time.
type fold[P, S any, PP checked[P], SS machine[P, S], D any] struct {
	pdata pdataPoints[P, S, D]
	delta bool // the outgoing point is the batch's own total
	in    P    // the point that is added, kept for its slices
	out   P    // the point that is written
	open  []openPoint[S, D]
	undos []foldUndo[S]
}

type openPoint[S, D any] struct {
	series *folded[S]
	point  D
}

// foldUndo is what it takes to undo the first change a batch makes to a series.
type foldUndo[S any] struct {
	owner   *owner
	all     map[observation.Key]*folded[S]
	key     observation.Key
	series  *folded[S]
	old     S // what it was, if it was changed
	created bool
	cleared bool
}

// add adds the point to its series.
func (f *fold[P, S, PP, SS, D]) add(b *batch, at place, all map[observation.Key]*folded[S], key observation.Key, dp D) verdict {
	if f.pdata.flags(dp).NoRecordedValue() {
		f.forget(at.owner, all, key)
		b.ledger.points[passed]++
		return keep
	}
	f.pdata.read(dp, &f.in)
	if r := PP(&f.in).Check(); r != nil {
		b.reject(at, r)
		return drop
	}
	s := all[key]
	switch {
	case s == nil:
		if !b.reserve(at.owner) {
			return asItCame
		}
		s = &folded[S]{state: f.pdata.newState()}
		all[key] = s
		f.remember(foldUndo[S]{owner: at.owner, all: all, key: key, series: s, created: true})
		SS(&s.state).Begin(&f.in)
	case s.open == 0:
		f.remember(foldUndo[S]{owner: at.owner, all: all, key: key, series: s})
		if f.delta {
			SS(&s.state).Resume()
		}
	}
	if why := SS(&s.state).Conflict(&f.in); why != "" {
		f.close(s)
		SS(&s.state).Begin(&f.in)
		b.restarted(at, why)
	}
	SS(&s.state).Fold(&f.in)
	b.ledger.points[foldedPoint]++
	if s.open > 0 {
		if f.delta {
			f.pdata.exemplars(dp).MoveAndAppendTo(f.pdata.exemplars(f.open[s.open-1].point))
		}
		return drop
	}
	f.open = append(f.open, openPoint[S, D]{s, dp})
	s.open = len(f.open)
	return keep
}

// forget ends the series: its next point begins anew.
func (f *fold[P, S, PP, SS, D]) forget(r *owner, all map[observation.Key]*folded[S], key observation.Key) {
	if s := all[key]; s != nil {
		f.close(s)
		f.remember(foldUndo[S]{owner: r, all: all, key: key, series: s, cleared: true})
		delete(all, key)
	}
}

// close writes the outgoing point of the series, if there is one.
func (f *fold[P, S, PP, SS, D]) close(s *folded[S]) {
	if s.open == 0 {
		return
	}
	dp := f.open[s.open-1].point
	s.open = 0
	f.out = SS(&s.state).Close()
	f.pdata.write(dp, &f.out)
	if !f.delta {
		f.pdata.exemplars(dp).RemoveIf(func(pmetric.Exemplar) bool { return true })
	}
}

func (f *fold[P, S, PP, SS, D]) closeAll() {
	for i, o := range f.open {
		if o.series.open == i+1 {
			f.close(o.series)
		}
	}
}

// remember keeps what is needed for undo. The slices of an earlier use are used again for the copy of the state.
func (f *fold[P, S, PP, SS, D]) remember(u foldUndo[S]) {
	n := len(f.undos)
	if n < cap(f.undos) {
		u.old = f.undos[:n+1][n].old
	}
	f.undos = append(f.undos, u)
	if !u.created && !u.cleared {
		SS(&f.undos[n].old).CopyFrom(&u.series.state)
	}
}

// undo takes back what the batch did, the latest first.
func (f *fold[P, S, PP, SS, D]) undo(b *batch) {
	for i := len(f.undos) - 1; i >= 0; i-- {
		switch u := &f.undos[i]; {
		case u.created:
			delete(u.all, u.key)
			b.release(u.owner)
		case u.cleared:
			u.all[u.key] = u.series
		default:
			SS(&u.series.state).CopyFrom(&u.old)
		}
	}
}

// settle makes what the batch did final.
func (f *fold[P, S, PP, SS, D]) settle(b *batch) {
	for i := range f.undos {
		if u := &f.undos[i]; u.cleared {
			b.release(u.owner)
		}
	}
}

func (f *fold[P, S, PP, SS, D]) reset() {
	var none P
	f.out = none
	clear(f.open)
	f.open = f.open[:0]
	for i := range f.undos {
		f.undos[i] = foldUndo[S]{old: f.undos[i].old}
	}
	f.undos = f.undos[:0]
}
