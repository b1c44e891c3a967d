// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import "slices"

// keys are the known keys of a map; the first ones of them are required.
type keys struct {
	all      []string
	required int
}

// fields reads a map at a level with string keys. It calls read for the value of
// each known key, goes over those of others, and names the key of a rejection.
func (w *walker) fields(depth int, known keys, read func(key string) *rejection) *rejection {
	n, rejected := w.mapLen()
	if rejected != nil {
		return rejected
	}
	seen := 0
	for ; n > 0; n-- {
		name, rejected := w.text()
		if rejected != nil {
			return rejected
		}
		i := slices.IndexFunc(known.all, func(key string) bool { return key == string(name) })
		if i < 0 {
			if rejected := w.skip(depth + 1); rejected != nil {
				return rejected
			}
			continue
		}
		if rejected := read(known.all[i]); rejected != nil {
			return under(rejected, known.all[i])
		}
		if seen&(1<<i) != 0 {
			return malformed(known.all[i], "the key twice", "it once")
		}
		seen |= 1 << i
	}
	for i, key := range known.all[:known.required] {
		if seen&(1<<i) == 0 {
			return malformed(key, "nothing", "the key to be there")
		}
	}
	return nil
}

// under puts a rejection one key further down.
func under(rejected *rejection, key string) *rejection {
	if rejected.field == "" {
		rejected.field = key
	} else {
		rejected.field = key + "." + rejected.field
	}
	return rejected
}
