// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func loadConfig(t *testing.T, name string) (*Config, error) {
	t.Helper()
	all, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	sub, err := all.Sub(name)
	require.NoError(t, err)
	config := NewFactory().CreateDefaultConfig().(*Config)
	return config, sub.Unmarshal(config)
}

func TestDefaultConfig(t *testing.T) {
	config, err := loadConfig(t, "fpm_benchmark")
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Include:      []string{"/tmp/benchmark_results*.json"},
		PollInterval: 5 * time.Second, Settle: 45 * time.Second, IncompleteAfter: 20 * time.Minute,
		MaxFileBytes: 256 << 20, Namespace: "default", Component: "backend",
	}, config)
	require.NoError(t, confmap.Validate(config))
}

func TestFullConfig(t *testing.T) {
	config, err := loadConfig(t, "fpm_benchmark/full")
	require.NoError(t, err)
	storage := component.MustNewIDWithName("file_storage", "runs")
	assert.Equal(t, &Config{
		Include:      []string{"/data/*/benchmark_results*.json", "/more/[a-f]?.json"},
		PollInterval: time.Second, Settle: 0, IncompleteAfter: time.Hour, MaxFileBytes: 1 << 30, Storage: &storage,
		Namespace: "team-a", Component: "prefill", ResourceAttributes: map[string]any{"k8s.node.name": "gpu-7", "rack": 12, "spare": true, "height": 1.5},
	}, config)
	require.NoError(t, confmap.Validate(config))
}

func TestEveryProblemAtOnce(t *testing.T) {
	config, err := loadConfig(t, "fpm_benchmark/wrong")
	require.NoError(t, err)
	assert.Equal(t, []string{
		`include::0: got "", want a pattern`,
		`include::1: got "/data/[a-", want a pattern of *, ? and [ranges]; ** is not known`,
		`poll_interval: got 5ns, want 1ms or more, with its unit`,
		`settle: got -1s, want 0s, or 1ms or more with its unit`,
		`incomplete_after: got 0s, want 1ms or more, with its unit`,
		`max_file_bytes: got 0, want 1 to 2147483647`,
		`namespace: got "", want a name`,
		`component: got "", want a name`,
		`resource_attributes::list: got [1 2], want a string, number or boolean`,
	}, strings.Split(config.Validate().Error(), "\n"))
}

func TestValidateRows(t *testing.T) {
	for _, test := range []struct {
		edit func(*Config)
		want string
	}{
		{func(c *Config) { c.Include = nil }, "include: got none, want at least one pattern, such as /tmp/benchmark_results*.json"},
		{func(c *Config) { c.IncompleteAfter = 44 * time.Second }, "incomplete_after: got 44s, want at least settle (45s)"},
		{func(c *Config) { c.Settle = time.Microsecond }, "settle: got 1µs, want 0s, or 1ms or more with its unit"},
		{func(c *Config) { c.MaxFileBytes = 1 << 31 }, "max_file_bytes: got 2147483648, want 1 to 2147483647"},
	} {
		config := createDefaultConfig().(*Config)
		test.edit(config)
		assert.EqualError(t, config.Validate(), test.want)
	}
}

func TestUnknownKey(t *testing.T) {
	_, err := loadConfig(t, "fpm_benchmark/unknown")
	assert.ErrorContains(t, err, "has invalid keys: includes")
}

// The README's table, the defaults and the struct agree.
func TestReadmeListsEveryKey(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	documented := map[string]string{}
	for _, match := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| `([^`]*)` \\|").FindAllStringSubmatch(string(text), -1) {
		documented[match[1]] = match[2]
	}
	defaults := reflect.ValueOf(createDefaultConfig()).Elem()
	for i := range defaults.NumField() {
		key := defaults.Type().Field(i).Tag.Get("mapstructure")
		want := fmt.Sprint(defaults.Field(i))
		switch value := defaults.Field(i).Interface().(type) {
		case []string:
			want = fmt.Sprintf("[%q]", value[0])
		case *component.ID:
			want = "none"
		case map[string]any:
			want = "{}"
		case time.Duration:
			if written, err := time.ParseDuration(documented[key]); assert.NoError(t, err, key) {
				documented[key] = written.String()
			}
		}
		assert.Equal(t, want, documented[key], key)
		delete(documented, key)
	}
	assert.Empty(t, documented)
}
