// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"fmt"
	"math"
)

// Reason says in one word why a point was rejected; it is the attribute of a counter.
type Reason string

const (
	// NotFinite is a value, sum, minimum or maximum that is NaN or infinite.
	NotFinite Reason = "not_finite"
	// NegativeIncrement is a monotonic sum that would go down.
	NegativeIncrement Reason = "negative_increment"
	// NoValue is a number point that has neither an int nor a double.
	NoValue Reason = "no_value"
	// BadTime is a delta point without a time, or with one after the year 2262.
	BadTime Reason = "bad_time"
	// BadBounds is a list of bounds that does not strictly increase.
	BadBounds Reason = "bad_bounds"
	// BadBuckets is a histogram that contradicts itself.
	BadBuckets Reason = "bad_buckets"
	// ScaleTooLow is an exponential histogram below the lowest scale that backends take.
	ScaleTooLow Reason = "scale_too_low"
)

// Reasons lists all reasons for a rejection.
func Reasons() []Reason {
	return []Reason{NotFinite, NegativeIncrement, NoValue, BadTime, BadBounds, BadBuckets, ScaleTooLow}
}

// Rejection is the error of a point that cannot be folded.
type Rejection struct {
	Reason  Reason
	Field   string
	Value   string
	Allowed string
}

func (r *Rejection) Error() string {
	return fmt.Sprintf("%s is %s; allowed: %s", r.Field, r.Value, r.Allowed)
}

func reject(reason Reason, field string, value any, allowed string) *Rejection {
	return &Rejection{Reason: reason, Field: field, Value: fmt.Sprint(value), Allowed: allowed}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func checkTime(at UnixNano) *Rejection {
	if at == 0 || at > math.MaxInt64 {
		return reject(BadTime, "time", uint64(at), "1 to 2^63-1 ns since 1970")
	}
	return nil
}

// Restart says in one word why a series began anew; it is the attribute of a counter. The empty Restart is none.
type Restart string

const (
	// BoundsChanged is a histogram point whose bounds, or whose zero threshold, are not those of its series.
	BoundsChanged Restart = "bounds_changed"
	// Overflow is a total that the next point would lift out of its range.
	Overflow Restart = "overflow"
)

// Restarts lists all reasons for a restart.
func Restarts() []Restart { return []Restart{BoundsChanged, Overflow} }
