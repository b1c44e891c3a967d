// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

// side is one of two runs: options, then edits.
type side struct {
	options fixture
	edit    func(*benchmarktest.Run)
}

func compare(t *testing.T, a, b side, flags ...string) result {
	t.Helper()
	folder := t.TempDir()
	for name, s := range map[string]side{"a.json": a, "b.json": b} {
		run := benchmarktest.New(s.options)
		if s.edit != nil {
			s.edit(run)
		}
		mergedFile(t, folder, name, run)
	}
	return command(t, folder, append(append([]string{"compare"}, flags...), "a.json", "b.json")...)
}

// parsed is compare with --json.
func parsed(t *testing.T, code int, a, b side, flags ...string) *jsonComparison {
	t.Helper()
	got := compare(t, a, b, append([]string{"--json"}, flags...)...)
	require.Equal(t, code, got.code, got.stderr)
	var c jsonComparison
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &c))
	return &c
}

func TestCompare(t *testing.T) {
	got := compare(t, side{fixture{RunID: "before"}, nil}, side{fixture{RunID: "after", Factor: 1.25}, nil})
	assert.Equal(t, 0, got.code)
	assert.Empty(t, got.stderr)
	golden(t, "compare", got.stdout)

	c := parsed(t, 0, side{}, side{fixture{RunID: "after", Factor: 1.25}, nil})
	require.Len(t, c.Pairs, 15, "two ranks and the slowest of five points")
	for i, p := range c.Pairs {
		assert.InDelta(t, 1.25, *p.Ratio, 1e-9)
		if i%3 == 2 {
			assert.Nil(t, p.Rank)
			assert.Nil(t, p.Prompts)
		} else {
			assert.Equal(t, i%3, *p.Rank)
			assert.Equal(t, promptsSame, *p.Prompts)
		}
		assert.Equal(t, i >= 12, p.OffByBatch)
	}
	assert.Empty(t, c.Notes)
	assert.Empty(t, c.Refused)
}

func TestFailOver(t *testing.T) {
	for _, test := range []struct {
		factor float64
		flags  string
		code   int
	}{
		{1.25, "", 0},
		{1.25, "--fail-over 1.3", 0},
		{1.25, "--fail-over 1.2", 1},
		{0.5, "--fail-over 1.2", 0},
		{0.5, "--fail-over 0.4", 1},
	} {
		got := compare(t, side{}, side{fixture{Factor: test.factor}, nil}, strings.Fields(test.flags)...)
		assert.Equal(t, test.code, got.code, "%v %s", test.factor, test.flags)
	}
	// One rank alone is enough.
	got := compare(t, side{}, side{fixture{}, func(r *benchmarktest.Run) {
		r.EachFPM(1, 1, func(fpm *object) {
			fpm.Set("wall_time", 0.05)
			fpm.Set("benchmark_measurement.raw_fpms.0.wall_time", 0.05)
		})
	}}, "--fail-over", "2")
	assert.Equal(t, 1, got.code)
}

// A comparison is refused for what the runs are, and every field is named.
func TestRefused(t *testing.T) {
	set := func(path string, value any) func(*benchmarktest.Run) {
		return func(r *benchmarktest.Run) { r.Merged.Set(path, value) }
	}
	versions := func(r *benchmarktest.Run) {
		r.Merged.Set("engine.versions.vllm", "0.30.0")
		r.Merged.Set("engine.versions.python", "3.13.0")
	}
	for _, test := range []struct {
		name   string
		b      side
		flags  string
		code   int
		fields []string
	}{
		{"another seed", side{fixture{}, set("measurement_protocol.content_seed", "1")}, "", 3, []string{"measurement_protocol.content_seed"}},
		{"a seed that is allowed", side{fixture{}, set("measurement_protocol.content_seed", "1")}, "--allow-different measurement_protocol.content_seed", 0, nil},
		{"no protocol", side{fixture{Legacy: true}, nil}, "", 3, []string{"measurement_protocol"}},
		{"no protocol, allowed", side{fixture{Legacy: true}, nil}, "--allow-different measurement_protocol", 0, nil},
		{"another version", side{fixture{}, versions}, "", 3, []string{"engine.versions.python", "engine.versions.vllm"}},
		{"one of two allowed", side{fixture{}, versions}, "--allow-different engine.versions.vllm", 3, []string{"engine.versions.python"}},
		{"both allowed", side{fixture{}, versions}, "--allow-different engine.versions.vllm --allow-different engine.versions.python", 0, nil},
		{"the block allowed", side{fixture{}, versions}, "--allow-different engine.versions", 0, nil},
		{"a beginning of a name is none of it", side{fixture{}, versions}, "--allow-different engine.ver", 3, []string{"engine.versions.python", "engine.versions.vllm"}},
		{"a field that one does not have", side{fixture{}, func(r *benchmarktest.Run) { r.Merged.Delete("engine.kv_cache.kv_cache_layout") }}, "", 3, []string{"engine.kv_cache.kv_cache_layout"}},
		{"a list", side{fixture{}, set("engine.model.architectures", benchmarktest.List{"Other"})}, "", 3, []string{"engine.model.architectures"}},

		// What is no identity does not refuse.
		{"no engine block", side{fixture{NoEngine: true}, nil}, "", 0, nil},
		{"values of a rank", side{fixture{}, func(r *benchmarktest.Run) {
			r.Merged.Set("limits.num_gpu_blocks", 7)
			r.Merged.Set("limits.max_model_len", 8)
			r.Merged.Set("engine.parallel.data_parallel_rank", nil)
		}}, "", 0, nil},
		{"what is known after the run", side{fixture{}, func(r *benchmarktest.Run) { r.ProbeInside() }}, "", 0, nil},
		{"another grid digest", side{fixture{}, func(r *benchmarktest.Run) {
			r.Each(func(file *object) { file.Set("grid_digest", "another") })
		}}, "", 0, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			flags := strings.Fields(test.flags)
			c := parsed(t, test.code, side{}, test.b, flags...)
			var fields []string
			for _, d := range c.Refused {
				fields = append(fields, d.Field)
				assert.NotEqual(t, d.A, d.B)
			}
			slices.Sort(fields)
			assert.Equal(t, test.fields, fields)
			assert.Equal(t, test.code == 3, len(c.Pairs) == 0)
			got := compare(t, side{}, test.b, flags...)
			assert.Equal(t, test.code, got.code)
			for _, field := range fields {
				assert.Contains(t, got.stdout, "differs: "+field+": A ")
			}
			for _, d := range c.Allowed {
				assert.Contains(t, got.stdout, "differs, allowed: "+d.Field+": A ")
			}
		})
	}
	got := compare(t, side{fixture{RunID: "before"}, nil}, side{fixture{RunID: "after"}, versions})
	golden(t, "compare_refused", got.stdout)
}

// What is not established is said.
func TestNotes(t *testing.T) {
	got := parsed(t, 0, side{fixture{Legacy: true}, nil}, side{fixture{Legacy: true, Partial: false}, nil})
	assert.Equal(t, []string{
		"A: no engine block; whether the engines are the same is unknown",
		"B: no engine block; whether the engines are the same is unknown",
		"no measurement_protocol in either run; whether they measured the same is unknown",
	}, got.Notes)
	for _, p := range got.Pairs {
		if p.Rank != nil {
			assert.Equal(t, promptsUnavailable, *p.Prompts)
		}
	}
	got = parsed(t, 1, side{fixture{}, func(r *benchmarktest.Run) {
		r.Merged.Set("engine.capture_errors", benchmarktest.NewObject("1", "missing engine block"))
		r.Merged.Set("timing.benchmark_elapsed_seconds", 0.001)
	}}, side{fixture{Partial: true}, nil})
	assert.Equal(t, []string{
		"A: rules are violated; see fpmbench check",
		"A: engine of rank 1 unknown: missing engine block",
		"B: status partial (timeout)",
	}, got.Notes)
}

// Points are matched by what they are, whatever the order and size of the grids.
func TestMatching(t *testing.T) {
	reversed := benchmarktest.StandardPoints()
	slices.Reverse(reversed)
	for name, legacy := range map[string]bool{"by point_key": false, "by coordinates": true} {
		t.Run(name, func(t *testing.T) {
			a := side{fixture{Legacy: legacy}, nil}
			c := parsed(t, 0, a, side{fixture{Legacy: legacy, Points: reversed, Factor: 2}, nil})
			require.Len(t, c.Pairs, 15)
			for _, p := range c.Pairs {
				assert.InDelta(t, 2, *p.Ratio, 1e-9)
			}

			// A subset: what only one has fails.
			subset := side{fixture{Legacy: legacy, Points: benchmarktest.StandardPoints()[1:3]}, nil}
			c = parsed(t, 1, a, subset)
			sides := map[string]int{}
			for _, p := range c.Pairs {
				switch {
				case p.A == nil:
					sides["only b"]++
				case p.B == nil:
					sides["only a"]++
				default:
					assert.InDelta(t, 1, *p.Ratio, 1e-9)
					sides["both"]++
				}
			}
			assert.Equal(t, map[string]int{"only a": 6, "both": 6}, sides)
			c = parsed(t, 1, subset, a)
			assert.Nil(t, c.Pairs[len(c.Pairs)-1].A)
			got := compare(t, subset, a)
			assert.Equal(t, 1, got.code)
			assert.Equal(t, 6, strings.Count(got.stdout, "only in B\n"))
		})
	}
}

// One run with keys and one without are matched by coordinates.
func TestMatchingWithKeysOnOneSide(t *testing.T) {
	c := parsed(t, 0, side{}, side{fixture{Legacy: true}, nil}, "--allow-different", "measurement_protocol")
	assert.Len(t, c.Pairs, 15)
}

// A point that is there twice is matched by its seeding and its turn.
func TestRepeatedPoints(t *testing.T) {
	plain := benchmarktest.StandardPoints()[2]
	slow, fast := plain, plain
	slow.Seconds, fast.Seconds = 0.02, 0.01
	c := parsed(t, 0,
		side{fixture{Ranks: 1, Points: []benchmarktest.Point{slow, fast}}, nil},
		side{fixture{Ranks: 1, Points: []benchmarktest.Point{slow, fast}, Factor: 3}, nil})
	require.Len(t, c.Pairs, 2)
	for _, p := range c.Pairs {
		assert.InDelta(t, 3, *p.Ratio, 1e-9)
	}
	// Of three against two one stays alone.
	c = parsed(t, 1,
		side{fixture{Ranks: 1, Points: []benchmarktest.Point{slow, fast, fast}}, nil},
		side{fixture{Ranks: 1, Points: []benchmarktest.Point{slow, fast}}, nil})
	assert.Len(t, c.Pairs, 3)

	// Seeded in another way it is another point, whatever its turn.
	seeded := func(first, second string) func(*benchmarktest.Run) {
		return func(r *benchmarktest.Run) {
			for i, regime := range []string{first, second} {
				for _, result := range r.Merged.List("results") {
					if holder := result.(*object); holder.At("point.benchmark_id") == i+1 {
						holder.Set("kv_seed_regime", regime)
					}
				}
			}
		}
	}
	c = parsed(t, 0,
		side{fixture{Ranks: 1, Points: []benchmarktest.Point{slow, fast}}, seeded("real_prefix", "none")},
		side{fixture{Ranks: 1, Points: []benchmarktest.Point{fast, slow}}, seeded("none", "real_prefix")})
	require.Len(t, c.Pairs, 2)
	for _, p := range c.Pairs {
		assert.InDelta(t, 1, *p.Ratio, 1e-9)
	}
}

// Prompts are compared for the same rank across runs, never across ranks.
func TestPrompts(t *testing.T) {
	c := parsed(t, 0, side{}, side{fixture{}, func(r *benchmarktest.Run) {
		r.EachFPM(1, 2, func(fpm *object) { fpm.Set("benchmark_measurement.prompts.sha256", strings.Repeat("0", 64)) })
		r.EachFPM(0, 3, func(fpm *object) {
			fpm.Set("benchmark_measurement.prompts", benchmarktest.NewObject("status", "unavailable", "sha256", nil, "requests", benchmarktest.List{}))
		})
	}})
	var got []string
	for _, p := range c.Pairs {
		if p.Rank != nil {
			got = append(got, *p.Prompts)
		}
	}
	assert.Equal(t, []string{"same", "same", "same", "differ", "unavailable", "same", "same", "same", "same", "same"}, got)
}

// A step that was not timed is on one side only; on both it is no fault.
func TestUntimedPoints(t *testing.T) {
	untimed := side{fixture{Legacy: true, Ranks: 1}, func(r *benchmarktest.Run) {
		r.EachFPM(0, 1, func(fpm *object) { fpm.Set("wall_time", 0.0) })
		r.EachGroup(1, func(group *object) { group.Set("wall_time", 0.0) })
	}}
	timed := side{fixture{Legacy: true, Ranks: 1}, nil}
	assert.Equal(t, 1, compare(t, timed, untimed).code)
	got := compare(t, untimed, untimed)
	assert.Equal(t, 0, got.code)
	assert.Contains(t, got.stdout, "not timed\n")
}

// Ratios that no double holds are none.
func TestRatioBeyondADouble(t *testing.T) {
	tiny := side{fixture{Legacy: true, Ranks: 1}, func(r *benchmarktest.Run) {
		r.EachFPM(0, 1, func(fpm *object) { fpm.Set("wall_time", 5e-324) })
	}}
	got := compare(t, tiny, side{fixture{Legacy: true, Ranks: 1}, nil}, "--json")
	assert.Equal(t, 0, got.code)
	assert.True(t, json.Valid([]byte(got.stdout)))
}
