// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the out and counters sections of the case files from what the processor does")

// TestCases runs the text files of testdata/cases; README.md there tells how to write one.
func TestCases(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "cases", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runCase(t, file) })
	}
}

func runCase(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)

	h := newHarness(t, caseConfig(t, archive))
	points := 0
	var steps []txtar.File // as they would be written by update
	for i := 0; i < len(archive.Files); i++ {
		section := archive.Files[i]
		words := strings.Fields(section.Name)
		where := fmt.Sprintf("section %d, %q", i+1, section.Name)
		switch {
		case words[0] == "config":
			require.Zero(t, i, "%s: config comes first", where)
			steps = append(steps, section)
		case words[0] == "in":
			h.now, err = time.ParseDuration(words[1])
			require.NoError(t, err, where)
			h.sink.refuse = len(words) > 2 && words[2] == "refused"
			md, err := parseMetrics(string(section.Data))
			require.NoError(t, err, where)
			points += md.DataPointCount()
			h.sink.text = ""
			err = h.ConsumeMetrics(context.Background(), md)
			if h.sink.refuse && h.sink.text != "" {
				require.ErrorIs(t, err, errRefused, where)
			} else {
				require.NoError(t, err, where)
			}
			steps = append(steps, section)
			if h.sink.text != "" {
				steps = append(steps, txtar.File{Name: "out", Data: []byte(h.sink.text)})
			}
			want := ""
			if i+1 < len(archive.Files) && archive.Files[i+1].Name == "out" {
				i++
				md, err := parseMetrics(string(archive.Files[i].Data))
				require.NoError(t, err, where)
				want = formatMetrics(md)
			}
			if !*update {
				require.Equal(t, want, h.sink.text, where)
			}
		case words[0] == "counters":
			have := h.counters()
			steps = append(steps, txtar.File{Name: "counters", Data: []byte(have)})
			if !*update {
				require.Equal(t, strings.TrimSpace(string(section.Data)), strings.TrimSpace(have), where)
			}
		default:
			t.Fatalf("%s: want config, in <clock> [refused], out or counters", where)
		}
	}
	require.Equal(t, points, h.decided(), "the decisions add up to the points that came in")
	if *update {
		archive.Files = steps
		require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
	}
}

func caseConfig(t *testing.T, archive *txtar.Archive) *Config {
	cfg := createDefaultConfig().(*Config)
	if len(archive.Files) > 0 && archive.Files[0].Name == "config" {
		provider := yamlprovider.NewFactory().Create(confmap.ProviderSettings{})
		retrieved, err := provider.Retrieve(context.Background(), "yaml:"+string(archive.Files[0].Data), nil)
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		require.NoError(t, conf.Unmarshal(cfg))
	}
	require.NoError(t, confmap.Validate(cfg))
	return cfg
}

// harness is a processor with a clock that is set by hand, and a next consumer that writes down what it gets.
type harness struct {
	*gaugeDedup
	t         *testing.T
	now       time.Duration
	sink      *textSink
	telemetry *componenttest.Telemetry
}

func newHarness(t *testing.T, cfg *Config) *harness {
	h := &harness{t: t, sink: &textSink{}, telemetry: componenttest.NewTelemetry()}
	set := nopSettings()
	set.TelemetrySettings = h.telemetry.NewTelemetrySettings()
	p, err := newGaugeDedup(set, cfg, h.sink, func() time.Duration { return h.now })
	require.NoError(t, err)
	h.gaugeDedup = p
	require.NoError(t, p.Start(context.Background(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		require.NoError(t, p.Shutdown(context.Background()))
		require.NoError(t, h.telemetry.Shutdown(context.Background()))
	})
	return h
}

// values returns the internal telemetry, each as name{attribute value}, without what is zero.
func (h *harness) values() map[string]int64 {
	all := map[string]int64{}
	for _, name := range []string{"points", "rejections", "restarts", "untracked", "evictions", "series"} {
		m, err := h.telemetry.GetMetric("otelcol_processor_gauge_dedup_" + name)
		if err != nil {
			continue // nothing was counted yet
		}
		var dps []metricdata.DataPoint[int64]
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			dps = data.DataPoints
		case metricdata.Gauge[int64]:
			dps = data.DataPoints
		}
		for _, dp := range dps {
			full := name
			for _, kv := range dp.Attributes.ToSlice() {
				full += "{" + kv.Value.AsString() + "}"
			}
			if dp.Value != 0 {
				all[full] += dp.Value
			}
		}
	}
	return all
}

func (h *harness) counters() string {
	var lines []string
	for name, value := range h.values() {
		lines = append(lines, fmt.Sprintf("%s %d\n", name, value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// decided returns the number of points for which a decision was counted.
func (h *harness) decided() (n int) {
	for name, value := range h.values() {
		if strings.HasPrefix(name, "points") {
			n += int(value)
		}
	}
	return n
}

var errRefused = errors.New("refused by the test")

// textSink is a consumer that can be told to refuse.
type textSink struct {
	text   string
	refuse bool
	consumerBase
}

func (s *textSink) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	s.text = formatMetrics(md)
	if s.refuse {
		return errRefused
	}
	return nil
}
