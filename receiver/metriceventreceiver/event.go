// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/otelcol-fpm/otelcol-fpm/internal/msgpack"
)

// Limits on what an event may hold, because a series remembers it.
const (
	maxMetricBytes = 255
	maxLabels      = 64
	maxLabelBytes  = 4096

	// maxWeight is far above any number of samples that one event stands for,
	// and far below what would overflow a count.
	maxWeight = 1 << 32
)

// operation gives a metric its kind, whatever its name.
type operation int

const (
	// operationSet assigns a gauge.
	operationSet operation = iota
	// operationInc adds to a counter.
	operationInc
	// operationObserve adds samples to a histogram.
	operationObserve
)

var operationNames = [...]string{"set", "inc", "observe"}

func (o operation) String() string { return operationNames[o] }

// label is one label of an event; both parts alias the payload.
type label struct{ name, value []byte }

// event is one observation of an engine. Text aliases the payload; labels are
// the decoder's until the next event: sorted by name, each once, none without a
// value.
type event struct {
	timestamp int64 // Unix nanoseconds
	metric    []byte
	operation operation
	value     number
	labels    []label
	weight    uint64
}

// Positions in an event's array.
const (
	fieldTimestamp = iota
	fieldMetric
	fieldOperation
	fieldValue
	fieldLabels
	fieldWeight
	fieldCount
)

var fieldNames = [...]string{"timestamp_ns", "metric", "operation", "value", "labels", "weight"}

// next reads and judges the next event of the message that was opened. It must
// not be called more often than there are events. With a rejection the event has
// what was read before it.
func (d *decoder) next() (event, *rejection) {
	start := d.walk.At()
	var e event
	rejected := d.event(&e)
	if rejected != nil {
		d.walk.Seek(start)
		_ = d.walk.skip(3) // open went over it
	}
	return e, rejected
}

func (d *decoder) event(e *event) *rejection {
	n, rejected := d.walk.arrayLen()
	if rejected != nil {
		return under(rejected, "event")
	}
	if n != fieldCount {
		return malformed("event", fmt.Sprintf("an array of %d", n), "an array of 6: timestamp_ns, metric, operation, value, labels, weight")
	}
	for field := range fieldCount {
		switch field {
		case fieldTimestamp:
			e.timestamp, rejected = d.count(1)
		case fieldMetric:
			e.metric, rejected = d.metric()
		case fieldOperation:
			e.operation, rejected = d.operation()
		case fieldValue:
			e.value, rejected = d.value(e.operation)
		case fieldLabels:
			e.labels, rejected = d.readLabels()
		case fieldWeight:
			e.weight, rejected = d.weight(e.operation, e.value)
		}
		if rejected != nil {
			return under(rejected, fieldNames[field])
		}
	}
	return nil
}

func (d *decoder) metric() ([]byte, *rejection) {
	name, rejected := d.walk.text()
	if rejected == nil && (len(name) == 0 || len(name) > maxMetricBytes) {
		rejected = malformed("", name, "a name of 1 to 255 bytes")
	}
	return name, rejected
}

func (d *decoder) operation() (operation, *rejection) {
	name, rejected := d.walk.text()
	if rejected == nil {
		switch string(name) {
		case "set":
			return operationSet, nil
		case "inc":
			return operationInc, nil
		case "observe":
			return operationObserve, nil
		}
		rejected = malformed("", name, "")
	}
	rejected.reason, rejected.want = rejectedOperation, "inc, set or observe"
	return 0, rejected
}

func (d *decoder) value(o operation) (number, *rejection) {
	value, rejected := d.walk.number()
	if rejected != nil {
		return number{}, rejected
	}
	switch f := value.float64(); {
	case !finite(f):
		return number{}, &rejection{rejectedNotFinite, "", value, "a finite number"}
	case o == operationInc && f < 0:
		return number{}, &rejection{rejectedNegativeIncrement, "", value, "0 or more with inc"}
	}
	return value, nil
}

// readLabels reads the labels, leaves out those without a value, and sorts the
// others: the order of labels does not matter, and null, "" and an absent label
// are the same to Prometheus.
func (d *decoder) readLabels() ([]label, *rejection) {
	labels, rejected := d.labelMap(d.labels[:0])
	d.labels = labels
	if rejected != nil {
		rejected.reason = rejectedLabel
		return nil, rejected
	}
	slices.SortFunc(labels, func(a, b label) int { return bytes.Compare(a.name, b.name) })
	for i := 1; i < len(labels); i++ {
		if bytes.Equal(labels[i-1].name, labels[i].name) {
			return nil, &rejection{rejectedLabel, quoteShort(labels[i].name), "the label twice", "each label once"}
		}
	}
	return labels, nil
}

func (d *decoder) labelMap(labels []label) ([]label, *rejection) {
	w := &d.walk
	n, rejected := w.mapLen()
	if rejected != nil {
		return labels, rejected
	}
	if n > maxLabels {
		return labels, malformed("", fmt.Sprintf("%d labels", n), fmt.Sprintf("at most %d", maxLabels))
	}
	size := 0
	for range n {
		name, rejected := w.text()
		if rejected != nil {
			return labels, rejected
		}
		if len(name) == 0 {
			return labels, malformed("", name, "names that are not empty")
		}
		got, rejected := w.peek()
		if rejected != nil {
			return labels, rejected
		}
		if got == msgpack.Nil {
			_ = w.skip(4)
			continue
		}
		value, rejected := w.text()
		if rejected != nil {
			return labels, under(rejected, quoteShort(name))
		}
		if size += len(name) + len(value); size > maxLabelBytes {
			return labels, malformed("", fmt.Sprintf("%d bytes of text or more", size), fmt.Sprintf("at most %d", maxLabelBytes))
		}
		if len(value) > 0 {
			labels = append(labels, label{name, value})
		}
	}
	return labels, nil
}

// weight reads how many samples an observation stands for; it may come as a
// whole float. An observation's sum must be finite.
func (d *decoder) weight(o operation, value number) (uint64, *rejection) {
	n, rejected := d.walk.number()
	if rejected != nil {
		rejected.reason = rejectedWeight
		rejected.want = "a whole number in 1 to 4294967296"
		return 0, rejected
	}
	f := n.float64()
	switch {
	case !(f >= 1 && f <= maxWeight) || f != math.Trunc(f):
		return 0, &rejection{rejectedWeight, "", n, "a whole number in 1 to 4294967296: how many samples have this value"}
	case o != operationObserve && f != 1:
		return 0, &rejection{rejectedWeight, "", n, "1 with " + o.String()}
	case o == operationObserve && !finite(value.float64()*f):
		return 0, &rejection{rejectedOverflow, "", n, "value × weight to be finite (value " + value.String() + ")"}
	}
	return uint64(f), nil
}
