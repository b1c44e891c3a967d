// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSeries(t *testing.T) {
	for path, want := range map[string]struct {
		series string
		index  uint64
		ok     bool
	}{
		"/tmp/dynamo-fpm.4192.000000.jsonl.gz":               {"/tmp/dynamo-fpm.4192", 0, true},
		"/tmp/dynamo-fpm.4192.000017.jsonl.gz":               {"/tmp/dynamo-fpm.4192", 17, true},
		"dynamo-fpm.a_b.1000000.jsonl.gz":                    {"dynamo-fpm.a_b", 1000000, true},
		"/t/fpm.v1.a.18446744073709551615.jsonl.gz":          {"/t/fpm.v1.a", 1<<64 - 1, true},
		"/tmp/dynamo-fpm.000003.jsonl.gz":                    {"/tmp/dynamo-fpm", 3, true}, // the id jsonl, in Dynamo
		"/tmp/dynamo-fpm.4192.0000001.jsonl.gz":              {},
		"/tmp/dynamo-fpm.4192.00001.jsonl.gz":                {},
		"/tmp/dynamo-fpm.4192.+00001.jsonl.gz":               {},
		"/tmp/dynamo-fpm.4192.00000a.jsonl.gz":               {},
		"/tmp/dynamo-fpm.4192.18446744073709551616.jsonl.gz": {},
		"/tmp/dynamo-fpm.4192.000000.jsonl":                  {},
		"/tmp/dynamo-fpm.4192.000000.jsonl.gz.bak":           {},
		"/tmp/trace.jsonl.gz":                                {},
		"000000.jsonl.gz":                                    {},
		".000000.jsonl.gz":                                   {},
		"":                                                   {},
	} {
		series, index, ok := Series(path)
		assert.Equal(t, want.series, series, path)
		assert.Equal(t, want.index, index, path)
		assert.Equal(t, want.ok, ok, path)
	}
}

// TestSeriesOfWriter: what a writer calls its files is one series each.
func TestSeriesOfWriter(t *testing.T) {
	for _, base := range []string{"/tmp/dynamo-fpm", "fpm", "/a.b/c.d"} {
		for _, id := range []string{"", "4192", "a/b", "jsonl"} {
			for _, wanted := range []uint64{0, 999999, 1000000, 1<<64 - 1} {
				series, index, ok := Series(fileName(base, nameFor(base, id), wanted))
				assert.True(t, ok)
				assert.Equal(t, base+"."+nameFor(base, id), series)
				assert.Equal(t, wanted, index)
			}
		}
	}
}
