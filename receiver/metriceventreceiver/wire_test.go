// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// raw is msgpack as it stands.
type raw []byte

// pair and pairs are a msgpack map in order.
type pair struct{ key, value any }

type pairs []pair

// encode writes msgpack: ints in their smallest form, pairs in order.
func encode(value any) []byte {
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	e.UseCompactInts(true)
	write(e, &b, value)
	return b.Bytes()
}

func write(e *msgpack.Encoder, b *bytes.Buffer, value any) {
	var err error
	switch value := value.(type) {
	case raw:
		b.Write(value)
	case pairs:
		err = e.EncodeMapLen(len(value))
		for _, p := range value {
			write(e, b, p.key)
			write(e, b, p.value)
		}
	case []any:
		err = e.EncodeArrayLen(len(value))
		for _, element := range value {
			write(e, b, element)
		}
	default:
		err = e.Encode(value)
	}
	if err != nil {
		panic(fmt.Sprintf("%T: %v", value, err))
	}
}

// set replaces a value, or adds the pair.
func (p pairs) set(key string, value any) pairs {
	changed := append(pairs(nil), p...)
	for i := range changed {
		if changed[i].key == key {
			changed[i].value = value
			return changed
		}
	}
	return append(changed, pair{key, value})
}

func (p pairs) without(key string) pairs {
	var changed pairs
	for _, one := range p {
		if one.key != key {
			changed = append(changed, one)
		}
	}
	return changed
}

const (
	testTime  = int64(1_700_000_000_000_000_000)
	testStart = int64(1_600_000_000_000_000_000)
	itl       = "tokenspeed:inter_token_latency_seconds"
)

var testLabels = pairs{{"model_name", "llama"}, {"app_key", ""}, {"dp_rank", "0"}}

// wireEvent is a good event, with changes by the name of the field.
func wireEvent(changes pairs) []any {
	event := []any{testTime, "tokenspeed:num_requests_running", "set", 3, testLabels, 1}
	for _, change := range changes {
		for i, name := range fieldNames {
			if change.key == name {
				event[i] = change.value
			}
		}
	}
	return event
}

func testProducer(pid int) pairs {
	return pairs{{keyHost, "gpu-7"}, {keyPID, pid}, {keyStartNS, testStart}}
}

// wireMessage is a message of one producer.
func wireMessage(pid int, seq, dropped int64, events ...any) pairs {
	if events == nil {
		events = []any{}
	}
	return pairs{
		{keyVersion, 1},
		{keyProducer, testProducer(pid)},
		{keySeq, seq},
		{keyDroppedTotal, dropped},
		{keyResource, pairs{}},
		{keyEvents, events},
	}
}

func framesOf(second any) [][]byte { return [][]byte{[]byte(magic), encode(second)} }

// readOne decodes a message with one event.
func readOne(t *testing.T, wire any) (event, *rejection) {
	t.Helper()
	var d decoder
	m, rejected := d.open(framesOf(wireMessage(1, 0, 0, wire)))
	require.Nil(t, rejected, "%v", rejected)
	require.Equal(t, 1, m.events)
	e, rejected := d.next()
	require.Zero(t, d.walk.Left(), "the event is not read to its end")
	return e, rejected
}
