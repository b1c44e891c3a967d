// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import "slices"

// HistogramPoint is a delta point of an explicit bucket histogram, or what a Histogram makes of several of them.
// Buckets has one more entry than Bounds, the upper bound of a bucket is inclusive; both may be empty.
type HistogramPoint struct {
	Distribution
	Bounds  []float64
	Buckets []uint64
}

// Check tells what makes the point unfit to be added, if anything.
func (p *HistogramPoint) Check() *Rejection {
	if len(p.Buckets) != len(p.Bounds)+1 && len(p.Buckets)+len(p.Bounds) > 0 {
		return reject(BadBuckets, "bucket_counts", len(p.Buckets), "one more than explicit_bounds, or both empty")
	}
	inBuckets, overflow := addCounts(0, false, p.Buckets)
	if len(p.Buckets) == 0 {
		inBuckets = p.Count
	}
	if r := p.check(inBuckets, overflow); r != nil {
		return r
	}
	return checkBounds(p.Bounds)
}

func (p *HistogramPoint) negative() bool {
	if p.HasMin && p.Min < 0 || p.HasSum && p.Sum < 0 {
		return true
	}
	for i, upper := range p.Bounds {
		if upper >= 0 {
			break
		}
		if p.Buckets[i] > 0 {
			return true
		}
	}
	return false
}

// Histogram adds up the points of one series.
//
// Invariant NeverRebinned: buckets are only added to buckets of the same bounds.
type Histogram struct {
	Timeline
	total
	bounds  Bounds
	buckets []uint64
}

// Conflict tells whether the series must begin anew before p can be added. Changes nothing.
func (h *Histogram) Conflict(p *HistogramPoint) Restart {
	switch {
	case len(h.buckets) != len(p.Buckets) || !h.bounds.Equal(p.Bounds):
		return BoundsChanged
	case h.overflowsWith(&p.Distribution):
		return Overflow
	}
	return ""
}

// Begin starts the series at zero, or anew, with p as the next point to be added.
func (h *Histogram) Begin(p *HistogramPoint) {
	h.begin(p.Start, p.Time)
	h.total = total{}
	h.setBounds(p.Bounds)
	h.buckets = slices.Grow(h.buckets[:0], len(p.Buckets))[:len(p.Buckets)]
	clear(h.buckets)
}

func (h *Histogram) setBounds(list []float64) {
	if !h.bounds.Equal(list) {
		h.bounds = MakeBounds(list)
	}
}

// Resume starts from zero where the last outgoing point ended: the next Close gives what was added since.
func (h *Histogram) Resume() {
	h.Timeline.resume()
	h.total.resume()
	clear(h.buckets)
}

// Fold adds p, which has been checked and is in no conflict.
func (h *Histogram) Fold(p *HistogramPoint) {
	h.see(p.Time)
	h.add(&p.Distribution, p.negative())
	for i, c := range p.Buckets {
		h.buckets[i] += c
	}
}

// Close returns the outgoing point. Its Buckets are the state's own: valid until the next call of another method.
// Its Bounds are left empty, they are those of every point folded since Begin.
func (h *Histogram) Close() HistogramPoint {
	return HistogramPoint{Distribution: h.distribution(h.close()), Buckets: h.buckets}
}

// CopyFrom makes h the same as o; they share nothing that changes.
func (h *Histogram) CopyFrom(o *Histogram) {
	buckets := append(h.buckets[:0], o.buckets...)
	*h = *o
	h.buckets = buckets
}
