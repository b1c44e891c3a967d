// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"fmt"
	"strconv"
)

// reason is why an event or a message was rejected; its text is the attribute
// of a counter.
type reason int

const (
	// rejectedMalformed: not the format; of a message, or of one event in it.
	rejectedMalformed reason = iota
	// rejectedOperation: none of inc, set and observe.
	rejectedOperation
	// rejectedOutOfRange: an integer above 2⁶³−1, which pdata cannot hold.
	rejectedOutOfRange
	// rejectedNotFinite: NaN or infinite.
	rejectedNotFinite
	// rejectedNegativeIncrement: a counter does not go down.
	rejectedNegativeIncrement
	// rejectedOverflow: value × weight is not finite.
	rejectedOverflow
	// rejectedLabel: labels that cannot become attributes.
	rejectedLabel
	// rejectedWeight: no count of samples, or not 1 with inc or set.
	rejectedWeight
	// rejectedKind: the catalogue has the metric with another operation, or it was
	// first seen with another one.
	rejectedKind
	// rejectedSeriesLimit: its series would be one more than max_series.
	rejectedSeriesLimit
	// rejectedProducerLimit: its producer would be one more than max_producers.
	rejectedProducerLimit
	// rejectedOversize: a connection was closed because the peer announced more
	// than max_message_bytes.
	rejectedOversize
	// rejectedProtocol: a connection was closed because what came is no whole
	// ZMTP message.
	rejectedProtocol

	reasonCount
)

var reasonNames = [...]string{
	"malformed", "operation", "out_of_range", "not_finite", "negative_increment", "overflow", "label", "weight",
	"kind", "series_limit", "producer_limit", "oversize", "protocol",
}

func (r reason) String() string { return reasonNames[r] }

// rejection says what is wrong with a message or an event: where, what was
// found, and what is allowed there. What was found may alias the payload, and is
// made into text only when it is shown: hostile input may be nothing but
// rejections.
type rejection struct {
	reason reason
	field  string
	got    any
	want   string
}

func (r *rejection) Error() string {
	return fmt.Sprintf("%s: got %s, want %s", r.field, show(r.got), r.want)
}

func malformed(field string, got any, want string) *rejection {
	return &rejection{rejectedMalformed, field, got, want}
}

// show makes a value from the wire fit for a log line.
func show(value any) string {
	switch value := value.(type) {
	case []byte:
		return quoteShort(value)
	case string:
		return value
	case float64:
		return strconv.FormatFloat(value, 'g', -1, 64)
	default:
		return fmt.Sprint(value)
	}
}

// quoteShort quotes text from outside: escaped, so that a line stays one line,
// and cut, so that it stays short.
func quoteShort(text []byte) string {
	const most = 60
	if len(text) > most {
		return fmt.Sprintf("%q… (%d bytes)", text[:most], len(text))
	}
	return fmt.Sprintf("%q", text)
}
