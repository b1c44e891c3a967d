// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

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
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"

	"github.com/otelcol-fpm/otelcol-fpm/exporter/fpmtraceexporter/internal/metadata"
)

func load(t *testing.T, name string) (*Config, error) {
	t.Helper()
	all, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	sub, err := all.Sub(component.NewIDWithName(metadata.Type, name).String())
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	return cfg, sub.Unmarshal(cfg)
}

func TestDefaultConfig(t *testing.T) {
	require.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	cfg, err := load(t, "")
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig(), cfg)
	require.NoError(t, confmap.Validate(cfg))
}

func TestFullConfig(t *testing.T) {
	cfg, err := load(t, "everything")
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(cfg))
	assert.Equal(t, &Config{
		Enabled: false, Path: "/var/log/dynamo/fpm.jsonl.gz", Mode: " FULL ", SampleInterval: 10 * time.Second,
		RollBytes: 1048576, MaxSegments: 8, FlushInterval: 500 * time.Millisecond, QueueSize: 100, QueueBytes: 200,
		CompressionLevel: 1, Fsync: "flush", MaxAge: 24 * time.Hour, MaxTotalBytes: 10737418240,
		DirectoryPermissions: "0750", MaxOpenProducers: 16, MaxKeys: 64,
	}, cfg)
	assert.Equal(t, modeFull, cfg.mode())
}

// TestEveryProblemAtOnce: one error names every key, its value and what is
// allowed.
func TestEveryProblemAtOnce(t *testing.T) {
	cfg, err := load(t, "everything_wrong")
	require.NoError(t, err)
	err = confmap.Validate(cfg)
	require.Error(t, err)
	assert.Equal(t, strings.Join([]string{
		`enabled: "maybe" is not allowed, must be one of true, 1, on, yes, false, 0, off, no`,
		`path: "/var/log/dynamo/" is not allowed, must end in the beginning of a file name, not in a directory`,
		`mode: "all" is not allowed, must be sampled or full`,
		`sample_interval: 0s is not allowed, must be greater than 0`,
		`roll_bytes: -1 is not allowed, must be greater than 0`,
		`max_segments: 0 is not allowed, must be greater than 0`,
		`flush_interval: -1s is not allowed, must be greater than 0`,
		`queue_size: 0 is not allowed, must be greater than 0`,
		`queue_bytes: 0 is not allowed, must be greater than 0`,
		`compression_level: 10 is not allowed, must be 1 (fastest) to 9 (smallest)`,
		`fsync: "always" is not allowed, must be never, roll or flush`,
		`max_age: -1s is not allowed, must be 0 (no limit) or more`,
		`max_total_bytes: -1 is not allowed, must be 0 (no limit) or more`,
		`directory_permissions: "0999" is not allowed, must be octal like 0755, at most 0777, and let the owner write and enter (0300)`,
		`max_open_producers: 0 is not allowed, must be greater than 0`,
		`max_keys: 0 is not allowed, must be greater than 0`,
	}, "\n"), err.Error())
}

func TestUnknownKey(t *testing.T) {
	_, err := load(t, "unknown_key")
	require.ErrorContains(t, err, "rotation")
}

func TestEnabledWords(t *testing.T) {
	for value, want := range map[any]bool{
		true: true, 1: true, "1": true, "on": true, "yes": true, "true": true, " ON ": true, "Yes": true, "TRUE": true,
		false: false, 0: false, "0": false, "off": false, "no": false, "false": false, "Off\n": false,
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.Enabled = !want
		require.NoError(t, confmap.NewFromStringMap(map[string]any{"enabled": value}).Unmarshal(cfg))
		require.NoError(t, confmap.Validate(cfg), "%q", value)
		assert.Equal(t, want, cfg.Enabled, "%q", value)
	}
	for _, value := range []any{"", "2", 2, "enable", nil, 1.5, []any{true}} {
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, confmap.NewFromStringMap(map[string]any{"enabled": value}).Unmarshal(cfg))
		require.ErrorContains(t, confmap.Validate(cfg), "enabled: ", "%q", value)
	}
}

func TestModeWords(t *testing.T) {
	for mode, allowed := range map[string]bool{
		"sampled": true, "full": true, "FULL": true, " Sampled\t": true, "": false, "all": false, "full sampled": false,
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.Mode = mode
		assert.Equal(t, allowed, cfg.Validate() == nil, "%q", mode)
	}
}

func TestDirectoryPermissions(t *testing.T) {
	for text, want := range map[string]os.FileMode{"0755": 0o755, "755": 0o755, "0700": 0o700, "777": 0o777, "0300": 0o300} {
		cfg := createDefaultConfig().(*Config)
		cfg.DirectoryPermissions = text
		require.NoError(t, cfg.Validate(), text)
		mode, _ := cfg.directoryMode()
		assert.Equal(t, want, mode)
	}
	for _, text := range []string{"", "rwx", "01777", "0555", "-755", "0o755", "8"} {
		cfg := createDefaultConfig().(*Config)
		cfg.DirectoryPermissions = text
		require.ErrorContains(t, cfg.Validate(), "directory_permissions", text)
	}
}

// TestDynamosVariables: the mapping that the README gives, with nothing set
// and with what people set.
func TestDynamosVariables(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	mapping := regexp.MustCompile("(?s)exporters:\n  fpm_trace:\n    enabled.*?```").FindString(string(readme))
	mapping = strings.TrimSuffix(mapping, "```")
	resolve := func(t *testing.T) *Config {
		resolver, err := confmap.NewResolver(confmap.ResolverSettings{
			URIs:              []string{"yaml:" + mapping},
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory(), envprovider.NewFactory()},
		})
		require.NoError(t, err)
		conf, err := resolver.Resolve(t.Context())
		require.NoError(t, err)
		sub, err := conf.Sub("exporters::fpm_trace")
		require.NoError(t, err)
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, sub.Unmarshal(cfg))
		return cfg
	}
	t.Run("nothing set", func(t *testing.T) {
		want := createDefaultConfig().(*Config)
		want.Enabled = false
		assert.Equal(t, want, resolve(t))
	})
	t.Run("everything set", func(t *testing.T) {
		t.Setenv("DYN_FPM_TRACE", "1")
		t.Setenv("DYN_FPM_OUTPUT_PATH", "/data/fpm")
		t.Setenv("DYN_FPM_MODE", "Full")
		t.Setenv("DYN_FPM_SAMPLE_INTERVAL_MS", "250")
		t.Setenv("DYN_FPM_JSONL_GZ_ROLL_BYTES", "1024")
		t.Setenv("DYN_FPM_MAX_SEGMENTS", "9")
		cfg := resolve(t)
		require.NoError(t, confmap.Validate(cfg))
		assert.True(t, cfg.Enabled)
		assert.Equal(t, "/data/fpm", cfg.Path)
		assert.Equal(t, modeFull, cfg.mode())
		assert.Equal(t, 250*time.Millisecond, cfg.SampleInterval)
		assert.Equal(t, int64(1024), cfg.RollBytes)
		assert.Equal(t, 9, cfg.MaxSegments)
	})
	t.Run("wrong", func(t *testing.T) {
		t.Setenv("DYN_FPM_TRACE", "enable")
		require.ErrorContains(t, confmap.Validate(resolve(t)), `enabled: "enable" is not allowed`)
	})
}

// TestReadmeListsEveryKey: the README's table, the defaults and the struct
// agree.
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
		if key == "" {
			continue
		}
		assert.Equal(t, fmt.Sprint(defaults.Field(i)), documented[key], key)
		delete(documented, key)
	}
	assert.Empty(t, documented)
}
