// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseOptions(t *testing.T) {
	long := strings.Repeat("p", 106)
	for name, row := range map[string]struct {
		args      string
		endpoints []string
		problems  []string
	}{
		"defaults":      {"", []string{"tcp://127.0.0.1:20380", "tcp://127.0.0.1:20381"}, nil},
		"one rank":      {"--ranks 1", []string{"tcp://127.0.0.1:20380"}, nil},
		"start rank":    {"--ranks 2 --dp-start-rank 8", []string{"tcp://127.0.0.1:20388", "tcp://127.0.0.1:20389"}, nil},
		"all addresses": {"--ranks 1 --endpoint tcp://*:5000", []string{"tcp://*:5000"}, nil},
		"ipv6":          {"--ranks 1 --endpoint tcp://[::1]:5000 --dp-start-rank 1", []string{"tcp://[::1]:5001"}, nil},
		"ipc":           {"--endpoint ipc:///run/fpm", []string{"ipc:///run/fpm.0", "ipc:///run/fpm.1"}, nil},
		"transport ipc": {"--ranks 1 --transport ipc", []string{"ipc:///tmp/sglang-fpm.0"}, nil},
		"transport tcp": {"--ranks 1 --transport tcp", []string{"tcp://127.0.0.1:20380"}, nil},
		"both agree":    {"--ranks 1 --transport ipc --endpoint ipc:///run/fpm", []string{"ipc:///run/fpm.0"}, nil},
		"last port":     {"--endpoint tcp://h:65534", []string{"tcp://h:65534", "tcp://h:65535"}, nil},

		"port over the end": {"--endpoint tcp://h:65535", nil, []string{"--endpoint tcp://h:65535: must be a port that leaves room for the ranks: rank 1 would bind 65536"}},
		"no port":           {"--endpoint tcp://h", nil, []string{"--endpoint tcp://h: must be tcp://host:port with a port of 1 to 65535"}},
		"port 0":            {"--endpoint tcp://h:0", nil, []string{"--endpoint tcp://h:0: must be tcp://host:port with a port of 1 to 65535"}},
		"no scheme":         {"--endpoint h:1", nil, []string{"--endpoint h:1: must be tcp://host:port or ipc://path"}},
		"ipc path too long": {"--ranks 1 --endpoint ipc://" + long, nil, []string{"--endpoint ipc://" + long + ": must be a path of at most 107 bytes with the rank: " + long + ".0 has 108"}},
		"no path":           {"--endpoint ipc://", nil, []string{"--endpoint ipc://: must be tcp://host:port or ipc://path"}},
		"both disagree":     {"--transport ipc --endpoint tcp://h:1", nil, []string{"--transport ipc: must be that of --endpoint tcp://h:1"}},
		"unknown transport": {"--transport inproc", nil, []string{`--transport "inproc": must be tcp or ipc`}},
		"unknown flag":      {"--port 1", nil, []string{"flag provided but not defined: -port, see --help"}},
		"no flag":           {"start now", nil, []string{`["start" "now"]: there are only flags, see --help`}},
		"all at once": {
			"--ranks 0 --dp-start-rank -1 --rate 0 --profile train --duration -1s --start-delay -2s --faults gap,fire", nil,
			[]string{
				"--ranks 0: must be 1 to 1024",
				"--dp-start-rank -1: must be 0 or more",
				"--rate 0: must be above 0, at most 100000",
				"--duration -1s: must be 0 or more",
				"--start-delay -2s: must be 0 or more",
				"--profile train: must be one of batch, chat, idle",
				`--faults "fire": must be one of restart, gap, silence, heartbeat-mid-pass`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseOptions(strings.Fields(row.args), nil)
			if row.problems != nil {
				require.EqualError(t, err, strings.Join(row.problems, "\n"))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, row.endpoints, o.endpoints)
		})
	}
}

func TestHelpNamesEveryFlagWithItsDefault(t *testing.T) {
	var out, errs strings.Builder
	require.Zero(t, run(t.Context(), []string{"--help"}, &out, &errs))
	assert.Empty(t, errs.String())
	for _, line := range []string{
		"--endpoint (default tcp://127.0.0.1:20380)", "--transport (default tcp)", "--ranks (default 2)", "--dp-start-rank (default 0)",
		"--rate (default 20)", "--profile (default chat)", "--duration (default 0s)", "--seed (default 1)",
		`--worker-id (default "")`, `--faults (default "")`, "--messages (default 0)", "--start-delay (default 0s)",
	} {
		assert.Contains(t, out.String(), line)
	}
}

// README.md has a row for each flag, with its default.
func TestReadmeNamesEveryFlagWithItsDefault(t *testing.T) {
	var help strings.Builder
	require.Zero(t, run(t.Context(), []string{"--help"}, &help, nil))
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	flags := regexp.MustCompile(`(?m)^  (--\S+) \(default (.*)\)$`).FindAllStringSubmatch(help.String(), -1)
	require.NotEmpty(t, flags)
	var want, have []string
	for _, flag := range flags {
		want = append(want, "| `"+flag[1]+"` | `"+flag[2]+"` |")
	}
	for _, row := range regexp.MustCompile("(?m)^(\\| `--\\S+` \\| `[^`]*` \\|)").FindAllStringSubmatch(string(readme), -1) {
		have = append(have, row[1])
	}
	assert.ElementsMatch(t, want, have)
}

func TestSchedule(t *testing.T) {
	start := time.Unix(1000, 0)
	s := newSchedule([]fault{gap, silence}, start)
	assert.Equal(t, start.Add(faultInterval), s.before(start.Add(time.Hour)))
	assert.Equal(t, start.Add(time.Second), s.before(start.Add(time.Second)))
	for _, row := range []struct {
		at   time.Duration
		want fault
	}{
		{0, ""},
		{faultInterval - 1, ""},
		{faultInterval, gap},
		{faultInterval, ""},
		{2*faultInterval + time.Second, silence},
		{3*faultInterval - 1, ""},
		{3 * faultInterval, gap},
	} {
		assert.Equal(t, row.want, s.due(start.Add(row.at)), "%v", row.at)
	}
	var none schedule
	assert.Empty(t, none.due(start))
	assert.Equal(t, start, none.before(start))
}
