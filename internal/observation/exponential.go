// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

// ExponentialPoint is a delta point of an exponential histogram, or what an Exponential makes of several of them.
type ExponentialPoint struct {
	Distribution
	Scale              int32
	ZeroCount          uint64
	ZeroThreshold      float64
	Positive, Negative Buckets
}

// Check tells what makes the point unfit to be added, if anything.
func (p *ExponentialPoint) Check() *Rejection {
	inBuckets, overflow := addCounts(p.ZeroCount, false, p.Positive.Counts)
	inBuckets, overflow = addCounts(inBuckets, overflow, p.Negative.Counts)
	if r := p.check(inBuckets, overflow); r != nil {
		return r
	}
	if !finite(p.ZeroThreshold) || p.ZeroThreshold < 0 {
		return reject(BadBuckets, "zero_threshold", p.ZeroThreshold, "a finite number, 0 or more")
	}
	if p.Scale < MinScale && p.ZeroCount < p.Count {
		return reject(ScaleTooLow, "scale", p.Scale, "-4 or more")
	}
	if r := p.Positive.check("positive", p.Scale); r != nil {
		return r
	}
	return p.Negative.check("negative", p.Scale)
}

// Exponential adds up the points of one series.
//
// Invariant ScaleOnlyFalls: within one start time the scale falls, to the coarser one of what is added and then until
// neither sign needs more than maxSize buckets, but never below MinScale, where 132 buckets hold every double.
// Points without a filled bucket never lower it; while there are only such points it is MaxScale.
type Exponential struct {
	Timeline
	total
	maxSize            int32
	scale              int32
	zeroCount          uint64
	zeroThreshold      float64
	positive, negative Buckets
}

// NewExponential returns a series that keeps at most maxSize buckets of each sign.
func NewExponential(maxSize int) Exponential {
	return Exponential{maxSize: int32(maxSize), scale: MaxScale}
}

// Conflict tells whether the series must begin anew before p can be added. Changes nothing.
func (e *Exponential) Conflict(p *ExponentialPoint) Restart {
	switch {
	case e.zeroThreshold != p.ZeroThreshold:
		return BoundsChanged
	case e.overflowsWith(&p.Distribution):
		return Overflow
	}
	return ""
}

// Begin starts the series at zero, or anew, with p as the next point to be added.
func (e *Exponential) Begin(p *ExponentialPoint) {
	e.begin(p.Start, p.Time)
	e.total = total{}
	e.zeroThreshold = p.ZeroThreshold
	e.clear()
}

// Resume starts from zero where the last outgoing point ended: the next Close gives what was added since.
func (e *Exponential) Resume() {
	e.Timeline.resume()
	e.total.resume()
	e.clear()
}

func (e *Exponential) clear() {
	e.scale, e.zeroCount = MaxScale, 0
	e.positive.empty()
	e.negative.empty()
}

// Fold adds p, which has been checked and is in no conflict.
func (e *Exponential) Fold(p *ExponentialPoint) {
	e.see(p.Time)
	negative := p.Negative.span()
	positive := p.Positive.span()
	e.add(&p.Distribution, p.HasMin && p.Min < 0 || p.HasSum && p.Sum < 0 || !negative.empty())
	e.zeroCount += p.ZeroCount
	if positive.empty() && negative.empty() {
		return
	}
	scale := e.fit(min(e.scale, p.Scale), p.Scale, positive, negative)
	e.positive.coarsen(e.scale, scale)
	e.negative.coarsen(e.scale, scale)
	e.scale = scale
	e.positive.cover(positive.at(p.Scale, scale))
	e.negative.cover(negative.at(p.Scale, scale))
	e.positive.add(&p.Positive, p.Scale, scale)
	e.negative.add(&p.Negative, p.Scale, scale)
}

// fit returns the finest scale, starting at scale, at which neither sign needs more than maxSize buckets for what is
// there and for the spans, which are of the scale from.
func (e *Exponential) fit(scale, from int32, positive, negative span) int32 {
	ownPositive, ownNegative := e.positive.span(), e.negative.span()
	for ; scale > MinScale; scale-- {
		p := ownPositive.at(e.scale, scale).with(positive.at(from, scale))
		n := ownNegative.at(e.scale, scale).with(negative.at(from, scale))
		if (p.empty() || p.size() <= int64(e.maxSize)) && (n.empty() || n.size() <= int64(e.maxSize)) {
			break
		}
	}
	return scale
}

// Close returns the outgoing point. Its Counts are the state's own: valid until the next call of another method.
func (e *Exponential) Close() ExponentialPoint {
	return ExponentialPoint{
		Distribution: e.distribution(e.close()),
		Scale:        e.scale, ZeroCount: e.zeroCount, ZeroThreshold: e.zeroThreshold,
		Positive: e.positive, Negative: e.negative,
	}
}

// CopyFrom makes e the same as o; they share nothing afterwards.
func (e *Exponential) CopyFrom(o *Exponential) {
	positive, negative := e.positive, e.negative
	positive.copyFrom(&o.positive)
	negative.copyFrom(&o.negative)
	*e = *o
	e.positive, e.negative = positive, negative
}
