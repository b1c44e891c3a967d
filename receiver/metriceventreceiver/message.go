// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"fmt"
	"math"
)

const (
	// magic is the first frame; its digit is the version of the format.
	magic = "tsme1"
	// version is that of the second frame.
	version = 1

	// maxHostBytes is the longest name of a host.
	maxHostBytes = 255
	// maxResourceBytes bounds the text of a resource, which is remembered for
	// each producer.
	maxResourceBytes = 65536
)

// Keys of the second frame.
const (
	keyVersion      = "v"
	keyProducer     = "producer"
	keySeq          = "seq"
	keyDroppedTotal = "dropped_total"
	keyResource     = "resource"
	keyEvents       = "events"

	keyHost    = "host"
	keyPID     = "pid"
	keyStartNS = "start_ns"
	keyRank    = "rank"
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
	d.walk.reset(frames[1])
	m, at, rejected := d.root()
	if rejected == nil && d.walk.left() > 0 {
		rejected = malformed("", fmt.Sprintf("%d bytes after the map", d.walk.left()), "one msgpack map")
	}
	if rejected != nil {
		if rejected.field == "" {
			rejected.field = "second frame"
		}
		return message{}, rejected
	}
	d.walk.seek(at)
	_, _ = d.walk.arrayLen() // was read before
	return m, nil
}

// root reads the map; at is the offset of the events.
func (d *decoder) root() (m message, at int, rejected *rejection) {
	w := &d.walk
	seen := map[string]bool{}
	n, rejected := w.mapLen()
	for ; n > 0 && rejected == nil; n-- {
		var key []byte
		if key, rejected = w.text(); rejected != nil {
			break
		}
		known := ""
		switch string(key) {
		case keyVersion:
			known, rejected = keyVersion, d.version()
		case keyProducer:
			known = keyProducer
			m.producer, rejected = d.producer()
		case keySeq:
			known = keySeq
			m.seq, rejected = d.count(0)
		case keyDroppedTotal:
			known = keyDroppedTotal
			m.droppedTotal, rejected = d.count(0)
		case keyResource:
			known = keyResource
			m.resource, rejected = d.resource()
		case keyEvents:
			known, at = keyEvents, w.at()
			if m.events, rejected = w.arrayLen(); rejected == nil {
				rejected = w.skipAll(m.events, 2)
			}
		default:
			rejected = w.skip(2)
		}
		switch {
		case rejected != nil:
			under(rejected, known)
		case seen[known]:
			rejected = malformed(known, "the key twice", "it once")
		case known != "":
			seen[known] = true
		}
	}
	if rejected == nil {
		rejected = missing(seen, keyVersion, keyProducer, keySeq, keyDroppedTotal, keyEvents)
	}
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

func (d *decoder) producer() (key producerKey, rejected *rejection) {
	w := &d.walk
	seen := map[string]bool{}
	n, rejected := w.mapLen()
	for ; n > 0 && rejected == nil; n-- {
		var name []byte
		if name, rejected = w.text(); rejected != nil {
			break
		}
		known := ""
		switch string(name) {
		case keyHost:
			known = keyHost
			key.host, rejected = d.hostName()
		case keyPID:
			known = keyPID
			key.pid, rejected = d.count(0)
		case keyStartNS:
			known = keyStartNS
			key.startNS, rejected = d.count(1)
		case keyRank:
			known = keyRank
			_, rejected = d.count(0) // events say theirs as a label
		default:
			rejected = w.skip(3)
		}
		switch {
		case rejected != nil:
			under(rejected, known)
		case seen[known]:
			rejected = malformed(known, "the key twice", "it once")
		case known != "":
			seen[known] = true
		}
	}
	if rejected == nil {
		rejected = missing(seen, keyHost, keyPID, keyStartNS)
	}
	return key, rejected
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
	start := d.walk.at()
	rejected := eachAttribute(&d.walk, func(string, any) {})
	return d.walk.payload[start:d.walk.at()], rejected
}

// eachAttribute reads a map of resource attributes: names to strings, booleans
// or numbers.
func eachAttribute(w *walker, do func(name string, value any)) *rejection {
	size := 0
	n, rejected := w.mapLen()
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
	case kindText:
		text, rejected := w.text()
		return string(text), rejected
	case kindBool:
		is, err := w.decoder.DecodeBool()
		if err != nil {
			return nil, w.broken(err)
		}
		return is, nil
	case kindInt:
		return w.integer()
	case kindFloat:
		value, rejected := w.number()
		if rejected == nil && !finite(value.float64()) {
			rejected = malformed("", value, want)
		}
		return value.float64(), rejected
	default:
		return nil, w.unexpected(got, want)
	}
}

// missing rejects when a key was not seen.
func missing(seen map[string]bool, keys ...string) *rejection {
	for _, key := range keys {
		if !seen[key] {
			return malformed(key, "nothing", "the key to be there")
		}
	}
	return nil
}

// under puts a rejection one key further down. Unknown keys are not named: the
// whole is not readable then.
func under(rejected *rejection, key string) *rejection {
	switch {
	case key == "":
	case rejected.field == "":
		rejected.field = key
	default:
		rejected.field = key + "." + rejected.field
	}
	return rejected
}
