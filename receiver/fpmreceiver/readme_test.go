// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/internal/histogramconfig"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(b)
}

// FPM_UPDATE=1 writes the block anew.
func TestReadmeMetricsTable(t *testing.T) {
	const begin, end = "<!-- metrics table, generated: begin -->\n", "<!-- metrics table, generated: end -->\n"
	before, rest, ok := strings.Cut(readme(t), begin)
	require.True(t, ok)
	table, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if os.Getenv("FPM_UPDATE") == "1" {
		require.NoError(t, os.WriteFile("README.md", []byte(before+begin+fpm.MetricsTable()+end+after), 0o644))
		return
	}
	assert.Equal(t, fpm.MetricsTable(), table, "run with FPM_UPDATE=1")
}

// Every key has a row with its default, and every row a key.
func TestReadmeConfiguration(t *testing.T) {
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.\\[\\]]+)` \\| ([^|]+) \\| [^|]+ \\|$").FindAllStringSubmatch(readme(t), -1) {
		documented[row[1]] = strings.Trim(row[2], "`")
		if d, err := time.ParseDuration(documented[row[1]]); err == nil && d > 0 {
			documented[row[1]] = d.String()
		}
	}
	want := map[string]string{}
	keys("", reflect.ValueOf(createDefaultConfig()).Elem(), want)
	// What has no text of its own is described.
	for key := range want {
		switch key {
		case "endpoints", "resource_attributes", "endpoints[].resource_attributes", "histogram.bounds", "histogram.exponential":
			want[key] = documented[key]
		}
	}
	for key, value := range want {
		assert.Equal(t, value, documented[key], key)
		assert.NotEmpty(t, documented[key], key)
	}
	_, section, _ := strings.Cut(readme(t), "## Configuration")
	section, _, _ = strings.Cut(section, "Durations need")
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		assert.Contains(t, want, row[1], "no such key")
	}
}

// keys lists the keys of a configuration with their defaults.
func keys(prefix string, value reflect.Value, into map[string]string) {
	for i := range value.NumField() {
		field, name := value.Field(i), prefix+value.Type().Field(i).Tag.Get("mapstructure")
		switch v := field.Interface().(type) {
		case time.Duration:
			into[name] = v.String()
		case []EndpointConfig:
			into[name] = ""
			keys(name+"[].", reflect.ValueOf(EndpointConfig{DPSize: 1}), into)
		case string:
			into[name] = v
			if v == "" {
				into[name] = `""`
			}
		case BatchConfig, DialConfig, histogramconfig.Config:
			keys(name+".", field, into)
		default:
			if strings.HasSuffix(name, ".exponential") {
				keys(name+".", reflect.ValueOf(histogramconfig.ExponentialConfig{MaxSize: 160}), into)
			}
			into[name] = fmt.Sprint(v)
		}
	}
}

// Every instrument is explained, and every reason.
func TestReadmeInternalTelemetry(t *testing.T) {
	text := readme(t)
	metadata, err := confmaptest.LoadConf("metadata.yaml")
	require.NoError(t, err)
	telemetry, err := metadata.Sub("telemetry::metrics")
	require.NoError(t, err)
	for name := range telemetry.ToStringMap() {
		assert.Contains(t, text, "| `otelcol_"+name+"` |")
	}
	for _, reason := range []string{
		string(fpm.ReasonEnvelope), string(fpm.ReasonMalformed), string(fpm.ReasonOutOfRange), string(fpm.ReasonUnsupportedVersion),
		rejectedOversize, rejectedRankLimit,
	} {
		assert.Contains(t, text, "| `"+reason+"` |")
	}
	for _, reason := range []string{droppedQueueFull, droppedRefused, droppedShutdown} {
		assert.Contains(t, text, "`dropped`, `"+reason+"`")
	}
	for _, state := range stateNames {
		assert.Contains(t, text, "| `"+state+"` |")
	}
}

// The examples are valid configurations.
func TestReadmeExamples(t *testing.T) {
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readme(t), -1)
	require.NotEmpty(t, examples)
	found := 0
	for _, example := range examples {
		retrieved, err := yamlprovider.NewFactory().Create(confmaptest.NewNopProviderSettings()).Retrieve(t.Context(), "yaml:"+example[1], nil)
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		if !conf.IsSet("receivers::fpm") {
			continue
		}
		found++
		own, err := conf.Sub("receivers::fpm")
		require.NoError(t, err)
		config := createDefaultConfig().(*Config)
		require.NoError(t, own.Unmarshal(config), example[1])
		require.NoError(t, config.Validate(), example[1])
	}
	assert.Equal(t, 2, found)
	first := strings.Count(examples[0][1], "\n")
	assert.LessOrEqual(t, first, 10, "getting started takes ten lines at most")
}

// The tests that the list of faults names exist.
func TestReadmeNamesTestsThatExist(t *testing.T) {
	exist := map[string]bool{}
	for _, dir := range []string{".", "../../internal/fpm", "../../internal/zmtp"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		require.NoError(t, err)
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, declaration := range parsed.Decls {
				if f, ok := declaration.(*ast.FuncDecl); ok {
					exist[f.Name.Name] = true
				}
			}
		}
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(readme(t), -1)
	require.Greater(t, len(named), 15)
	for _, name := range named {
		assert.True(t, exist[name[1]], name[1])
	}
}
