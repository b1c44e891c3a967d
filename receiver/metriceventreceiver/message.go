// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"fmt"
	"math"

	"github.com/otelcol-fpm/otelcol-fpm/internal/msgpack"
)

const (
	// magic is the first frame; its digit is the version of the format.
	magic = "tsme1"
	// version is that of the second frame.
	version = 1

	// maxHostBytes is the longest name of a host.
	maxHostBytes = 255
	// A resource is remembered for each producer.
	maxResourceKeys  = 1024
	maxResourceBytes = 65536 // of text
)

// Keys of the second frame.
const (
	keyVersion      = "v"
	keyProducer     = "producer"
	keySeq          = "seq"
	keyDroppedTotal = "dropped_total"
	keyEvents       = "events"
	keyResource     = "resource"

	keyHost    = "host"
	keyPID     = "pid"
	keyStartNS = "start_ns"
	keyRank    = "rank"
)

// The keys of its maps, those that must be there first.
var (
	messageKeys  = keys{all: []string{keyVersion, keyProducer, keySeq, keyDroppedTotal, keyEvents, keyResource}, required: 5}
	producerKeys = keys{all: []string{keyHost, keyPID, keyStartNS, keyRank}, required: 3}
)

// producerKey tells producers apart: one is the sink of one engine process.
type producerKey struct {
	host    string
	pid     int64
	startNS int64
}

// String is the producer's service.instance.id.
func (k producerKey) String() string { return fmt.Sprintf("%s:%d:%d", k.host, k.pid, k.startNS) }

// message is what a message says beside its events.
type message struct {
	producer producerKey
	// seq is the number of events that the producer handed to its socket before
	// this message; droppedTotal the number of those that never got there.
	seq, droppedTotal int64
	// resource is a msgpack map of scalars that aliases the payload; empty when
	// there is none.
	resource []byte
	// events is how many events the decoder's next gives.
	events int
}

// decoder reads messages. It reuses its buffers and remembers the last host, so
// it belongs to one connection. The zero decoder is ready and must not be copied
// after its first use.
type decoder struct {
	walk   walker
	host   string
	labels []label
}

// open checks a message from end to end, and reads all of it but the events,
// which next gives one by one. A message is malformed as a whole, or msgpack as
// a whole: what is wrong with an event costs that event alone.
func (d *decoder) open(frames [][]byte) (message, *rejection) {
	if len(frames) != 2 {
		return message{}, malformed("frames", len(frames), `2, the first "tsme1"`)
	}
	if string(frames[0]) != magic {
		return message{}, malformed("first frame", frames[0], `"tsme1"`)
	}
	d.walk.Reset(frames[1])
	m, at, rejected := d.root()
	if rejected == nil && d.walk.Left() > 0 {
		rejected = malformed("", fmt.Sprintf("%d bytes after the map", d.walk.Left()), "one msgpack map")
	}
	if rejected != nil {
		if rejected.field == "" {
			rejected.field = "second frame"
		}
		return message{}, rejected
	}
	d.walk.Seek(at)
	_, _ = d.walk.arrayLen() // was read before
	return m, nil
}

// release lets go of the message that was opened: a connection may be idle for
// long after a large one.
func (d *decoder) release() {
	d.walk.Reset(nil)
	clear(d.labels[:cap(d.labels)])
}

// root reads the map; at is the offset of the events.
func (d *decoder) root() (m message, at int, rejected *rejection) {
	w := &d.walk
	rejected = w.fields(1, messageKeys, func(key string) (rejected *rejection) {
		switch key {
		case keyVersion:
			rejected = d.version()
		case keyProducer:
			m.producer, rejected = d.producer()
		case keySeq:
			m.seq, rejected = d.count(0)
		case keyDroppedTotal:
			m.droppedTotal, rejected = d.count(0)
		case keyResource:
			m.resource, rejected = d.resource()
		case keyEvents:
			at = w.At()
			if m.events, rejected = w.arrayLen(); rejected == nil {
				rejected = w.skipAll(m.events, 2)
			}
		}
		return rejected
	})
	if rejected == nil && m.seq > math.MaxInt64-int64(m.events) {
		rejected = &rejection{rejectedOutOfRange, keySeq, m.seq, "with the events of the message at most 9223372036854775807"}
	}
	return m, at, rejected
}

// version refuses any other at once: it may have changed everything that
// follows.
func (d *decoder) version() *rejection {
	value, rejected := d.walk.integer()
	if rejected == nil && value != version {
		rejected = malformed("", value, "1")
	}
	return rejected
}

func (d *decoder) producer() (producer producerKey, rejected *rejection) {
	rejected = d.walk.fields(2, producerKeys, func(key string) (rejected *rejection) {
		switch key {
		case keyHost:
			producer.host, rejected = d.hostName()
		case keyPID:
			producer.pid, rejected = d.count(0)
		case keyStartNS:
			producer.startNS, rejected = d.count(1)
		case keyRank:
			_, rejected = d.count(0) // events say theirs as a label
		}
		return rejected
	})
	return producer, rejected
}

// hostName reads a string that is nearly always the same as in the message
// before, and then costs no allocation.
func (d *decoder) hostName() (string, *rejection) {
	host, rejected := d.walk.text()
	if rejected != nil {
		return "", rejected
	}
	if len(host) == 0 || len(host) > maxHostBytes {
		return "", malformed("", host, "1 to 255 bytes")
	}
	if d.host != string(host) {
		d.host = string(host)
	}
	return d.host, nil
}

// count reads an int that is at least least.
func (d *decoder) count(least int64) (int64, *rejection) {
	value, rejected := d.walk.integer()
	if rejected == nil && value < least {
		rejected = malformed("", value, fmt.Sprintf("%d or more", least))
	}
	return value, rejected
}

// resource checks the map of resource attributes and returns it as it stands.
func (d *decoder) resource() ([]byte, *rejection) {
	start := d.walk.At()
	rejected := eachAttribute(&d.walk, func(string, any) {})
	return d.walk.Payload()[start:d.walk.At()], rejected
}

// eachAttribute reads a map of resource attributes: names to strings, booleans
// or numbers.
func eachAttribute(w *walker, do func(name string, value any)) *rejection {
	size := 0
	n, rejected := w.mapLen()
	if rejected == nil && n > maxResourceKeys {
		return malformed("", fmt.Sprintf("%d keys", n), fmt.Sprintf("at most %d", maxResourceKeys))
	}
	for ; n > 0 && rejected == nil; n-- {
		var name []byte
		if name, rejected = w.text(); rejected != nil {
			break
		}
		var value any
		if value, rejected = attributeValue(w); rejected != nil {
			return under(rejected, quoteShort(name))
		}
		text, _ := value.(string)
		if size += len(name) + len(text); len(name) == 0 || size > maxResourceBytes {
			return malformed("", fmt.Sprintf("a name of %d bytes, %d of text so far", len(name), size),
				fmt.Sprintf("names, and at most %d bytes of text", maxResourceBytes))
		}
		do(string(name), value)
	}
	return rejected
}

func attributeValue(w *walker) (any, *rejection) {
	const want = "a string, boolean or finite number"
	got, rejected := w.peek()
	if rejected != nil {
		return nil, rejected
	}
	switch got {
	case msgpack.String:
		text, rejected := w.text()
		return string(text), rejected
	case msgpack.Bool:
		return w.Bool(), nil
	case msgpack.Int:
		return w.integer()
	case msgpack.Float:
		value, rejected := w.number()
		if rejected == nil && !finite(value.float64()) {
			rejected = malformed("", value, want)
		}
		return value.float64(), rejected
	default:
		return nil, w.unexpected(got, want)
	}
}
