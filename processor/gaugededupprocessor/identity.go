// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"hash/maphash"
	"math"
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// A key is made of two independently seeded 64 bit hashes. The seeds are drawn anew in each process, so that no input
// can be made to collide on purpose.
var (
	seedHi = maphash.MakeSeed()
	seedLo = maphash.MakeSeed()

	saltLeft  = stringKey("left")
	saltRight = stringKey("right")

	tags = [...]observation.Key{
		pcommon.ValueTypeEmpty:  stringKey("empty"),
		pcommon.ValueTypeStr:    stringKey("string"),
		pcommon.ValueTypeInt:    stringKey("int"),
		pcommon.ValueTypeDouble: stringKey("double"),
		pcommon.ValueTypeBool:   stringKey("bool"),
		pcommon.ValueTypeMap:    stringKey("map"),
		pcommon.ValueTypeSlice:  stringKey("slice"),
		pcommon.ValueTypeBytes:  stringKey("bytes"),
	}
)

func stringKey(s string) observation.Key {
	return observation.Key{Hi: maphash.String(seedHi, s), Lo: maphash.String(seedLo, s)}
}

func bitsKey(v uint64) observation.Key { return observation.Key{Hi: v, Lo: v} }

// pair gives the key of an ordered pair.
func pair(a, b observation.Key) observation.Key {
	return observation.Key{
		Hi: multiply(a.Hi^saltLeft.Hi, b.Hi^saltRight.Hi),
		Lo: multiply(a.Lo^saltLeft.Lo, b.Lo^saltRight.Lo),
	}
}

func multiply(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// mapKey gives the key of a set of attributes, whatever their order: the keys of its entries are added.
func mapKey(m pcommon.Map) observation.Key {
	var sum observation.Key
	for name, value := range m.All() {
		entry := pair(stringKey(name), valueKey(value))
		sum.Hi += entry.Hi
		sum.Lo += entry.Lo
	}
	return pair(sum, bitsKey(uint64(m.Len())))
}

// valueKey gives the key of a value and its type: the string "1", the int 1, the double 1 and true all differ.
func valueKey(v pcommon.Value) observation.Key {
	tag := tags[v.Type()]
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return pair(tag, stringKey(v.Str()))
	case pcommon.ValueTypeInt:
		return pair(tag, bitsKey(uint64(v.Int())))
	case pcommon.ValueTypeDouble:
		return pair(tag, bitsKey(math.Float64bits(v.Double())))
	case pcommon.ValueTypeBool:
		if v.Bool() {
			return pair(tag, bitsKey(1))
		}
		return pair(tag, bitsKey(0))
	case pcommon.ValueTypeBytes:
		return pair(tag, stringKey(string(v.Bytes().AsRaw())))
	case pcommon.ValueTypeMap:
		return pair(tag, mapKey(v.Map()))
	case pcommon.ValueTypeSlice:
		key := pair(tag, bitsKey(uint64(v.Slice().Len())))
		for _, element := range v.Slice().All() {
			key = pair(key, valueKey(element))
		}
		return key
	default:
		return tag
	}
}

func scopeKey(scope pcommon.InstrumentationScope) observation.Key {
	return pair(pair(stringKey(scope.Name()), stringKey(scope.Version())), mapKey(scope.Attributes()))
}

func metricKey(scope observation.Key, m pmetric.Metric) observation.Key {
	return pair(pair(scope, stringKey(m.Name())), stringKey(m.Unit()))
}

func seriesKey(metric observation.Key, attributes pcommon.Map) observation.Key {
	return pair(metric, mapKey(attributes))
}
