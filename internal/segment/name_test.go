// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBase(t *testing.T) {
	for path, want := range map[string]string{
		"/tmp/dynamo-fpm":              "/tmp/dynamo-fpm",
		"/tmp/fpm.jsonl.gz":            "/tmp/fpm",
		"/tmp/fpm.jsonl":               "/tmp/fpm",
		"/tmp/fpm.jsonl.gz.jsonl.gz":   "/tmp/fpm.jsonl.gz",
		"/tmp/fpm.jsonl.jsonl.gz":      "/tmp/fpm.jsonl",
		"/tmp/fpm.gz":                  "/tmp/fpm.gz",
		"relative/dir.jsonl/dynamo":    "relative/dir.jsonl/dynamo",
		"/tmp/fpm.JSONL.GZ":            "/tmp/fpm.JSONL.GZ",
		"/var/log/dynamo/fpm.v2.jsonl": "/var/log/dynamo/fpm.v2",
	} {
		assert.Equal(t, want, Base(path), path)
	}
}

func TestCheckPath(t *testing.T) {
	for path, allowed := range map[string]bool{
		"/tmp/dynamo-fpm":                    true,
		"fpm":                                true,
		"/tmp/fpm.jsonl.gz":                  true,
		"/tmp/" + strings.Repeat("a", 128):   true,
		"":                                   false,
		"  ":                                 false,
		"/tmp/":                              false,
		"/tmp/.jsonl.gz":                     false,
		".":                                  false,
		"/tmp/..":                            false,
		"/":                                  false,
		"/tmp/a\x00b":                        false,
		"/tmp/" + strings.Repeat("a", 129):   false,
		strings.Repeat("a/", 500) + "dynamo": true,
	} {
		assert.Equal(t, allowed, CheckPath(path) == nil, "%q: %v", path, CheckPath(path))
	}
}

func TestSanitize(t *testing.T) {
	for id, want := range map[string]string{
		"4192":               "4192",
		"gpu-7:20380":        "gpu-7_20380",
		"gpu-7:/tmp/sglang":  "gpu-7__tmp_sglang",
		"":                   "unknown",
		"a.b":                "a_b",
		"..":                 "__",
		"../../etc/passwd":   "______etc_passwd",
		"世界":                 "__",
		"\x00\n ":            "___",
		"\xff\xfe":           "__",
		"jsonl":              "jsonl",
		"A-Z_0":              "A-Z_0",
		"é":                  "_",
		"\u212a":             "_", // the Kelvin sign is no k
		"a\\b":               "a_b",
		"w.000001.jsonl.gz":  "w_000001_jsonl_gz",
		"worker@tcp://h:1/0": "worker_tcp___h_1_0",
	} {
		assert.Equal(t, want, Sanitize(id), "%q", id)
	}
}

func TestFileNames(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, test := range []struct {
		id    string
		index uint64
		want  string
	}{
		{"4192", 0, "/tmp/dynamo-fpm.4192.000000.jsonl.gz"},
		{"4192", 1_000_000, "/tmp/dynamo-fpm.4192.1000000.jsonl.gz"},
		{"jsonl", 0, "/tmp/dynamo-fpm.jsonl.000000.jsonl.gz"},
		{"..", 7, "/tmp/dynamo-fpm.__.000007.jsonl.gz"},
		{"", 7, "/tmp/dynamo-fpm.unknown.000007.jsonl.gz"},
		{long, math.MaxUint64, "/tmp/dynamo-fpm." + strings.Repeat("x", 205) + "-01ec3b6b.18446744073709551615.jsonl.gz"},
	} {
		base := "/tmp/dynamo-fpm"
		path := fileName(base, nameFor(base, test.id), test.index)
		if test.id == long {
			assert.Len(t, filepath.Base(path), maxFileName)
			assert.NotEqual(t, nameFor(base, long), nameFor(base, long+"y"), "cut names stay apart")
		} else {
			assert.Equal(t, test.want, path)
		}
		name, index, ok := parseName("dynamo-fpm", filepath.Base(path))
		assert.True(t, ok)
		assert.Equal(t, nameFor(base, test.id), name)
		assert.Equal(t, test.index, index)
	}
}

func TestForeignNames(t *testing.T) {
	for _, name := range []string{
		"dynamo-fpm.4192.00001.jsonl.gz", "dynamo-fpm.4192.0000001.jsonl.gz", "dynamo-fpm.4192.000001.jsonl",
		"dynamo-fpm.4192.000001.jsonl.gz.bak", "dynamo-fpm.000001.jsonl.gz", "dynamo-fpm..000001.jsonl.gz",
		"dynamo-fpm.a.b.000001.jsonl.gz", "dynamo-fpm2.4192.000001.jsonl.gz", "dynamo-fpm.4192.+00001.jsonl.gz",
		"dynamo-fpm.4192.-00001.jsonl.gz", "dynamo-fpm.4192.00000a.jsonl.gz", "dynamo-fpm.é.000001.jsonl.gz",
		"dynamo-fpm.4192.18446744073709551616.jsonl.gz", ".dynamo-fpm.write-probe-1", "", "dynamo-fpm.jsonl.gz",
		"dynamo-fpm.4192.１２３４５６.jsonl.gz",
	} {
		_, _, ok := parseName("dynamo-fpm", name)
		assert.False(t, ok, name)
	}
}

// FuzzNames: no id leads out of the directory, and a file name says which name
// and index it was made of.
func FuzzNames(f *testing.F) {
	for _, id := range []string{"", "..", "/", "jsonl", "a/../../b", strings.Repeat("é", 300), "\x00", "x.000001"} {
		f.Add(id, uint64(0))
	}
	f.Fuzz(func(t *testing.T, id string, index uint64) {
		for _, name := range []string{nameFor("/d/base", id), hashed("/d/base", id, 8), hashed("/d/base", id, 64)} {
			path := fileName("/d/base", name, index)
			require.Equal(t, "/d", filepath.Dir(filepath.Clean(path)))
			require.Equal(t, path, filepath.Clean(path))
			require.LessOrEqual(t, len(filepath.Base(path)), maxFileName)
			parsed, parsedIndex, ok := parseName("base", filepath.Base(path))
			require.True(t, ok)
			require.Equal(t, name, parsed)
			require.Equal(t, index, parsedIndex)
		}
	})
}

func FuzzParseName(f *testing.F) {
	for _, name := range []string{"base.a.000001.jsonl.gz", "base.a.1000000.jsonl.gz", "base.a.0000001.jsonl.gz", "base..000000.jsonl.gz"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, file string) {
		name, index, ok := parseName("base", file)
		if ok {
			require.Equal(t, file, fileName("base", name, index))
			require.Equal(t, name, Sanitize(name))
		}
	})
}
