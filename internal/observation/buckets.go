// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import "math"

const (
	// MaxScale is the finest scale of an exponential histogram; that of a series in which there are only zeros.
	MaxScale int32 = 20
	// MinScale is the coarsest scale backends take. At it all doubles lie in 132 buckets.
	MinScale int32 = -4

	minIndexAtMinScale = -68 // of the smallest subnormal, 2^-1074
	maxIndexAtMinScale = 63  // of the largest double, just below 2^1024
)

// Buckets are the buckets of one sign of an exponential histogram: Counts[i] belongs to the index Offset+i.
type Buckets struct {
	Offset int32
	Counts []uint64
}

// span is a range of bucket indexes, both included; it is empty when first > last.
type span struct{ first, last int64 }

var emptySpan = span{math.MaxInt64, math.MinInt64}

func (s span) empty() bool { return s.first > s.last }

func (s span) size() int64 { return s.last - s.first + 1 }

func (s span) with(o span) span { return span{min(s.first, o.first), max(s.last, o.last)} }

// coarser returns how far an index moves right from one scale to a coarser one. Buckets nest: an index is halved and
// rounded down for each scale.
func coarser(from, to int32) uint { return uint(min(int64(from)-int64(to), 63)) }

// at returns the span of the scale from as it is at the coarser scale to.
func (s span) at(from, to int32) span {
	if s.empty() {
		return s
	}
	by := coarser(from, to)
	return span{s.first >> by, s.last >> by}
}

// span returns the range of buckets that hold anything.
func (b *Buckets) span() span {
	first, last := 0, len(b.Counts)-1
	for first <= last && b.Counts[first] == 0 {
		first++
	}
	for last >= first && b.Counts[last] == 0 {
		last--
	}
	if first > last {
		return emptySpan
	}
	return span{int64(b.Offset) + int64(first), int64(b.Offset) + int64(last)}
}

// check tells whether all counts belong to values a double can have.
func (b *Buckets) check(field string, scale int32) *Rejection {
	s := b.span()
	if s.empty() {
		return nil
	}
	if c := s.at(scale, MinScale); c.first < minIndexAtMinScale || c.last > maxIndexAtMinScale || s.last > math.MaxInt32 {
		return reject(BadBuckets, field, []int64{s.first, s.last}, "bucket indexes of finite doubles at the point's scale")
	}
	return nil
}

// coarsen moves the buckets from one scale to a coarser one, in place.
func (b *Buckets) coarsen(from, to int32) {
	s := b.span()
	if from == to || s.empty() {
		return
	}
	by, after := coarser(from, to), s.at(from, to)
	offset := int64(b.Offset)
	for i, c := range b.Counts {
		if c == 0 {
			continue
		}
		b.Counts[i] = 0
		// Never right of i, so that no count is met twice: halving brings indexes closer to the first one.
		b.Counts[(offset+int64(i))>>by-after.first] += c
	}
	b.Offset = int32(after.first)
	b.Counts = b.Counts[:after.size()]
}

// cover makes room for the span.
func (b *Buckets) cover(s span) {
	own := b.span()
	all := own.with(s)
	if all.empty() {
		b.Offset, b.Counts = 0, b.Counts[:0]
		return
	}
	if !own.empty() && int64(b.Offset) == all.first && int64(len(b.Counts)) == all.size() {
		return
	}
	n := int(all.size())
	counts := b.Counts
	if own.empty() && cap(counts) >= n {
		counts = counts[:n]
		clear(counts)
	} else {
		counts = make([]uint64, n)
		if !own.empty() {
			i := own.first - int64(b.Offset)
			copy(counts[own.first-all.first:], b.Counts[i:i+own.size()])
		}
	}
	b.Offset, b.Counts = int32(all.first), counts
}

// add adds o, which is of the scale from, to the buckets of the scale to; room has been made for it.
func (b *Buckets) add(o *Buckets, from, to int32) {
	by := coarser(from, to)
	for i, c := range o.Counts {
		if c > 0 {
			b.Counts[(int64(o.Offset)+int64(i))>>by-int64(b.Offset)] += c
		}
	}
}

func (b *Buckets) copyFrom(o *Buckets) {
	b.Offset, b.Counts = o.Offset, append(b.Counts[:0], o.Counts...)
}

func (b *Buckets) empty() { b.Offset, b.Counts = 0, b.Counts[:0] }
