// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

type counts = map[string]int64

// The sidecar comes up to half a minute after the merged file.
func TestWaitsForTheSidecar(t *testing.T) {
	for name, test := range map[string]struct {
		sidecarAfter time.Duration
		delivered    time.Duration
		evidence     bool
	}{
		"it comes":           {30 * time.Second, 30 * time.Second, true},
		"it comes too late":  {50 * time.Second, 45 * time.Second, false},
		"it comes at once":   {time.Second, 5 * time.Second, true},
		"never mind polling": {12 * time.Second, 15 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, folder string) {
				files := benchmarktest.New(benchmarktest.Options{}).Files()
				g := newRig(t, folder)
				for _, name := range []string{benchmarktest.Name(0), benchmarktest.Name(1), benchmarktest.MergedName} {
					g.write(name, files[name])
				}
				g.start()
				begin := time.Now()
				for passed := time.Second; passed <= 2*time.Minute; passed += time.Second {
					g.pass(time.Until(begin.Add(passed)))
					if passed == test.sidecarAfter {
						g.write(benchmarktest.SidecarName, files[benchmarktest.SidecarName])
					}
					if passed == test.delivered-time.Second {
						assert.Empty(t, g.counts("runs"))
					}
				}
				g.stop()
				assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
				records := g.logs.records()
				assert.Equal(t, test.evidence, attr(t, events(records, "run")[0], "fpm.engine.post_run_evidence"))
				observed := events(records, "run")[0].ObservedTimestamp().AsTime()
				assert.InDelta(t, test.delivered.Seconds(), observed.Sub(begin).Seconds(), 5)
				if !test.evidence {
					assert.Equal(t, int64(1), g.counts("files")["ignored"], "what comes late")
				}
			})
		})
	}
}

// The sidecar is followed where the merged file says it is, or beside it.
func TestSidecarOutsideOfInclude(t *testing.T) {
	for name, place := range map[string]func(folder string) (said, written string){
		"where it says": func(folder string) (string, string) {
			return folder + "/elsewhere/probe", folder + "/elsewhere/probe"
		},
		"beside it": func(folder string) (string, string) { return "/not/mounted/here/probe", folder + "/probe" },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, folder string) {
				require.NoError(t, os.Mkdir(folder+"/elsewhere", 0o700))
				said, written := place(folder)
				run := benchmarktest.New(benchmarktest.Options{})
				run.Merged.Set("worker_probe_path", said)
				sidecar := run.Sidecar
				run.Sidecar = nil
				run.Write(t, folder)
				g := newRig(t, folder)
				g.start()
				g.pass(20 * time.Second)
				assert.Empty(t, g.counts("runs"))
				benchmarktest.WriteFile(t, written, sidecar.JSON())
				g.pass(10 * time.Second)
				assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
				g.pass(time.Minute)
				g.stop()
				assert.Equal(t, true, attr(t, events(g.logs.records(), "run")[0], "fpm.engine.post_run_evidence"))
				assert.Equal(t, counts{"taken": 4}, g.counts("files"))
			})
		})
	}
}

// A sidecar that an earlier run left is no evidence for this one.
func TestSidecarOfAnotherRun(t *testing.T) {
	for name, outside := range map[string]bool{"in include": false, "followed": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, folder string) {
				run := benchmarktest.New(benchmarktest.Options{})
				run.Sidecar.Set("run_id", "another")
				if outside {
					run.Merged.Set("worker_probe_path", folder+"/probe")
					benchmarktest.WriteFile(t, folder+"/probe", run.Sidecar.JSON())
					run.Sidecar = nil
				}
				run.Write(t, folder)
				g := newRig(t, folder)
				g.start()
				g.pass(2 * time.Minute)
				g.stop()
				g.settled()
				assert.Equal(t, counts{"valid": 1}, g.counts("runs"), "delivered, and not invalid for it")
				assert.Equal(t, false, attr(t, events(g.logs.records(), "run")[0], "fpm.engine.post_run_evidence"))
				if outside {
					assert.Equal(t, counts{"sidecar_run_id": 1}, g.counts("rejected"))
				}
			})
		})
	}
}

func TestIncompleteRun(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{Ranks: 4})
		run.Ranks[1], run.Ranks[3], run.Merged, run.Sidecar = nil, nil, nil, nil
		run.Write(t, folder)
		g := newRig(t, folder)
		g.start()
		g.pass(20*time.Minute - time.Second)
		assert.Empty(t, g.counts("runs"))
		g.pass(time.Second)
		assert.Equal(t, counts{"incomplete": 1}, g.counts("runs"))
		g.stop()
		assert.InDelta(t, 0, named(g.metrics.points(), "fpm.benchmark.valid")[0].value, 0)
		violation := events(g.logs.records(), "violation")[0]
		assert.Equal(t, "ranks_present", attr(t, violation, "fpm.benchmark.rule"))
		assert.Equal(t, []any{int64(1), int64(3)}, attr(t, violation, "fpm.benchmark.ranks"))
		assert.Len(t, events(g.logs.records(), "point"), 10, "what is there is delivered")
	})
}

func TestCopyOfARunIsADuplicate(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{})
		for _, name := range []string{"a", "b"} {
			require.NoError(t, os.Mkdir(filepath.Join(folder, name), 0o700))
			run.Write(t, filepath.Join(folder, name))
		}
		g := newRig(t, folder, func(c *Config) { c.Include = []string{folder + "/a/*.json", folder + "/*/*.json"} })
		g.start()
		g.pass(time.Minute)
		g.stop()
		assert.Equal(t, counts{"taken": 4, "duplicate": 4}, g.counts("files"))
		assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
		assert.Len(t, events(g.logs.records(), "point"), 10)
	})
}

func TestRewritesOfADeliveredRunAreIgnored(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{})
		run.Write(t, folder)
		g := newRig(t, folder)
		g.start()
		assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
		for i := range 3 {
			run.Ranks[0].Set("timing_valid", i)
			g.write(benchmarktest.Name(0), run.Ranks[0].JSON())
			g.pass(10 * time.Second)
		}
		g.write("late copy.json", run.Merged.JSON())
		g.pass(time.Hour)
		g.stop()
		assert.Equal(t, counts{"taken": 4, "ignored": 4}, g.counts("files"))
		assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
	})
}

// The next run writes over the files of the one before.
func TestNextRunInTheSameFiles(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		benchmarktest.New(benchmarktest.Options{RunID: "first"}).Write(t, folder)
		g := newRig(t, folder)
		g.start()
		g.pass(time.Minute)
		second := benchmarktest.New(benchmarktest.Options{RunID: "second", Factor: 2})
		for _, name := range []string{benchmarktest.MergedName, benchmarktest.SidecarName} {
			g.remove(name)
		}
		g.pass(10 * time.Second)
		second.Write(t, folder)
		g.pass(time.Minute)
		g.stop()
		assert.Equal(t, counts{"valid": 2}, g.counts("runs"))
		durations := named(g.metrics.points(), "fpm.benchmark.step.duration")
		require.Len(t, durations, 20)
		assert.Equal(t, "second", durations[10].resource["fpm.benchmark.run_id"])
		assert.InDelta(t, 0.025, durations[10].value, 1e-12)
	})
}

func TestRunOverwrittenBeforeItWasDelivered(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		first := benchmarktest.New(benchmarktest.Options{RunID: "first"})
		first.Sidecar = nil
		first.Write(t, folder)
		g := newRig(t, folder)
		g.start()
		g.pass(20 * time.Second)
		benchmarktest.New(benchmarktest.Options{RunID: "second"}).Write(t, folder)
		g.pass(10 * time.Second)
		g.stop()
		assert.Equal(t, counts{"lost": 1, "valid": 1}, g.counts("runs"))
		require.Equal(t, 1, g.lines.Len())
		assert.Equal(t, "first", g.lines.All()[0].ContextMap()["run_id"])
	})
}

// Bad files beside a good run: each is one line, one count, and nothing else.
func TestHostileFiles(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{})
		run.Write(t, folder)
		text := run.Ranks[0].JSON()
		g := newRig(t, folder)
		g.write("truncated.json", text[:len(text)/2])
		g.write("empty.json", nil)
		g.write("deep.json", []byte(strings.Repeat("[", 1<<20)))
		g.write("nan.json", []byte(strings.Replace(string(text), `"wall_time": 0.0125,`, `"wall_time": NaN,`, 1)))
		g.write("infinity.json", []byte(strings.Replace(string(text), `"wall_time": 0.0125,`, `"wall_time": 1e999,`, 1)))
		g.write("version.json", []byte(`{"schema_version": 3, "artifact_type": "rank", "results": []}`))
		g.write("list.json", []byte(`[1, 2]`))
		g.write("values.json", []byte("["+strings.Repeat("0,", 1<<20)+"0]"))
		require.NoError(t, os.Truncate(filepath.Join(folder, "empty.json"), 0))
		huge, err := os.Create(filepath.Join(folder, "huge.json"))
		require.NoError(t, err)
		require.NoError(t, huge.Truncate(1<<30))
		require.NoError(t, huge.Close())
		require.NoError(t, os.Mkdir(filepath.Join(folder, "folder.json"), 0o700))
		require.NoError(t, syscall.Mkfifo(filepath.Join(folder, "pipe.json"), 0o600))
		require.NoError(t, os.Symlink("nothing", filepath.Join(folder, "dangling.json")))

		g.start()
		g.pass(5 * time.Minute)
		g.stop()
		g.settled()
		assert.Equal(t, counts{"json": 4, "not_finite": 2, "schema": 2, "size": 1, "unreadable": 2}, g.counts("rejected"))
		assert.Equal(t, counts{"taken": 4, "rejected": 11}, g.counts("files"))
		assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
		byFile := map[string]string{}
		for _, line := range g.lines.All() {
			byFile[filepath.Base(line.ContextMap()["file"].(string))] = fmt.Sprint(line.ContextMap()["error"])
		}
		assert.Len(t, byFile, 11)
		assert.Equal(t, "size: file: got 1073741824 bytes, want at most 268435456", byFile["huge.json"])
		assert.Equal(t, "schema: schema_version: got 3, want 1 or 2", byFile["version.json"])
		assert.Contains(t, byFile["nan.json"], "got NaN, want a finite number")
	})
}

// A file that was copied in place is taken when it is whole; one that is being
// written beside its place is not looked at.
func TestFileThatBecomesWhole(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{Ranks: 1, Legacy: true})
		text := run.Merged.JSON()
		g := newRig(t, folder, func(c *Config) { c.Include = []string{folder + "/*"} })
		require.NoError(t, os.WriteFile(folder+"/copied.json", text[:1000], 0o600))
		require.NoError(t, os.WriteFile(folder+"/written.json.tmp", text[:1000], 0o600))
		g.start()
		assert.Equal(t, counts{"json": 1}, g.counts("rejected"))
		require.NoError(t, os.WriteFile(folder+"/copied.json", text, 0o600))
		g.pass(5 * time.Second)
		g.stop()
		assert.Equal(t, counts{"json": 1}, g.counts("rejected"))
		assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
	})
}

// A file that may not be read is trouble until it may, and is counted once.
func TestUnreadableFile(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{Ranks: 1, Legacy: true})
		run.Ranks = nil
		run.Write(t, folder)
		path := filepath.Join(folder, benchmarktest.MergedName)
		require.NoError(t, os.Chmod(path, 0))
		g := newRig(t, folder)
		g.start()
		g.pass(time.Minute)
		assert.Equal(t, counts{"unreadable": 1}, g.counts("rejected"))
		assert.Equal(t, componentstatus.StatusRecoverableError, g.host.statuses()[0])
		require.NoError(t, os.Chmod(path, 0o600))
		g.pass(5 * time.Second)
		g.stop()
		assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
		assert.Equal(t, componentstatus.StatusOK, g.host.statuses()[len(g.host.statuses())-1])
	})
}

// The trouble ends as well when the file goes.
func TestTroubleEndsWithTheFile(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		require.NoError(t, os.Mkdir(filepath.Join(folder, "folder.json"), 0o700))
		g := newRig(t, folder)
		g.start()
		g.remove("folder.json")
		g.pass(5 * time.Second)
		g.stop()
		assert.Equal(t, []componentstatus.Status{
			componentstatus.StatusRecoverableError, componentstatus.StatusRecoverableError, // one a signal
			componentstatus.StatusOK, componentstatus.StatusOK,
		}, g.host.statuses())
	})
}

func TestFilesAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		for i := range 20 {
			benchmarktest.WriteFile(t, fmt.Sprintf("%s/%02d.json", folder, i), []byte("{}"))
		}
		g := newRig(t, folder)
		factory := NewFactory()
		logs, err := factory.CreateLogs(t.Context(), g.settings(), g.config, g.logs)
		require.NoError(t, err)
		r := logs.(*benchmarkReceiver)
		r.maxFiles = 15
		require.NoError(t, logs.Start(t.Context(), g.host))
		g.pass(time.Minute)
		assert.Equal(t, counts{"schema": 15, "limit": 5}, g.counts("rejected"))
		g.remove("00.json", "01.json")
		g.pass(time.Minute)
		assert.Equal(t, counts{"schema": 17, "limit": 5}, g.counts("rejected"))
		require.NoError(t, logs.Shutdown(t.Context()))
		assert.Len(t, r.tracker.files, 15)
	})
}

// Nothing stays of files that are gone.
func TestNothingStaysOfFilesThatAreGone(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		g := newRig(t, folder)
		g.start()
		r := g.receivers[0].(*benchmarkReceiver)
		for i := range 5 {
			run := benchmarktest.New(benchmarktest.Options{RunID: fmt.Sprint(i)})
			run.Merged.Set("worker_probe_path", folder+"/probe")
			benchmarktest.WriteFile(t, folder+"/probe", run.Sidecar.JSON())
			run.Sidecar = nil
			run.Write(t, folder)
			g.pass(time.Minute)
			g.remove(benchmarktest.Name(0), benchmarktest.Name(1), benchmarktest.MergedName, "probe")
			g.pass(time.Minute)
		}
		assert.Equal(t, counts{"valid": 5}, g.counts("runs"))
		g.stop()
		assert.Empty(t, r.tracker.files)
		assert.Empty(t, r.tracker.runs)
		assert.Empty(t, r.followed)
	})
}
