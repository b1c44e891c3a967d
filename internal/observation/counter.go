// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import "math"

// Increment is a point of a monotonic delta sum, or what a Counter makes of several of them.
type Increment struct {
	Start, Time UnixNano
	// Int is the value, or Double when IsDouble. Without HasValue the point carries none.
	Int      int64
	Double   float64
	IsDouble bool
	HasValue bool
}

// Check tells what makes the increment unfit to be added, if anything.
func (i *Increment) Check() *Rejection {
	switch {
	case !i.HasValue:
		return reject(NoValue, "value", "absent", "an int or a double")
	case i.IsDouble && !finite(i.Double):
		return reject(NotFinite, "value", i.Double, "a finite number")
	case i.IsDouble && i.Double < 0:
		return reject(NegativeIncrement, "value", i.Double, "0 or more in a monotonic sum")
	case i.Int < 0:
		return reject(NegativeIncrement, "value", i.Int, "0 or more in a monotonic sum")
	}
	return checkTime(i.Time)
}

// Counter adds up the increments of one series.
//
// Invariant IntStaysInt: the total is an int as long as all increments were; from the first double on it is a double.
type Counter struct {
	Timeline
	ints    int64
	doubles Sum
	double  bool
}

// Conflict tells whether the series must begin anew before i can be added. Changes nothing.
func (c *Counter) Conflict(i *Increment) Restart {
	switch {
	case !c.double && !i.IsDouble:
		if i.Int > math.MaxInt64-c.ints {
			return Overflow
		}
	case i.IsDouble && c.doubles.overflowsWith(i.Double):
		return Overflow
	}
	return ""
}

// Begin starts the series at zero, or anew, with i as the next point to be added.
func (c *Counter) Begin(i *Increment) {
	*c = Counter{Timeline: c.Timeline}
	c.begin(i.Start, i.Time)
}

// Resume starts from zero where the last outgoing point ended: the next Close gives what was added since.
func (c *Counter) Resume() {
	c.resume()
	c.ints, c.doubles, c.double = 0, Sum{}, false
}

// Fold adds i, which has been checked and is in no conflict.
func (c *Counter) Fold(i *Increment) {
	c.see(i.Time)
	if i.IsDouble && !c.double {
		c.double = true
		c.doubles.Add(float64(c.ints))
		c.ints = 0
	}
	switch {
	case i.IsDouble:
		c.doubles.Add(i.Double)
	case c.double:
		c.doubles.Add(float64(i.Int))
	default:
		c.ints += i.Int
	}
}

// Close returns the outgoing point.
func (c *Counter) Close() Increment {
	start, at := c.close()
	return Increment{Start: start, Time: at, Int: c.ints, Double: c.doubles.Value(), IsDouble: c.double, HasValue: true}
}

// CopyFrom makes c the same as o; they share nothing afterwards.
func (c *Counter) CopyFrom(o *Counter) { *c = *o }
