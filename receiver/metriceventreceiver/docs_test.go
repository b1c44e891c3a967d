// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/zmtp"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// The README has every key with its default, and no other.
func TestReadmeHasEveryKey(t *testing.T) {
	conf := confmap.New()
	require.NoError(t, conf.Marshal(createDefaultConfig()))
	want := map[string]string{"catalog": "[]", "resource_attributes": "{}"}
	for key, value := range conf.ToStringMap() {
		for key, value := range flat(key, value) {
			if value != nil && !strings.HasPrefix(fmt.Sprint(value), "[") && !strings.HasPrefix(fmt.Sprint(value), "map[") {
				want[key] = defaultText(value)
			}
		}
	}
	entry := confmap.New()
	require.NoError(t, entry.Marshal(CatalogConfig{}))
	for _, key := range entry.AllKeys() {
		want["catalog[]."+key] = ""
	}
	have := map[string]string{}
	_, table, found := strings.Cut(readme(t), "## Configuration")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.\\[\\]]+)` \\| (`[^`]*`)? ?\\|").FindAllStringSubmatch(table, -1) {
		have[row[1]] = strings.Trim(row[2], "`")
	}
	assert.Equal(t, want, have)
}

func flat(key string, value any) map[string]any {
	all := map[string]any{key: value}
	if inner, ok := value.(map[string]any); ok {
		delete(all, key)
		for name, value := range inner {
			all[key+"."+name] = value
		}
	}
	return all
}

func defaultText(value any) string {
	if d, ok := value.(time.Duration); ok {
		return strings.TrimSuffix(d.String(), "0s")
	}
	return fmt.Sprint(value)
}

// The README has every name that internal telemetry can have.
func TestReadmeHasEveryCounter(t *testing.T) {
	text := readme(t)
	names := append([]string{droppedQueueFull, droppedRefused, droppedShutdown, "accepted", "rejected"}, reasonNames[:]...)
	for _, reason := range []zmtp.Reason{
		refusedLimit, zmtp.ReasonTimeout, zmtp.ReasonSignature, zmtp.ReasonVersion, zmtp.ReasonMechanism,
		zmtp.ReasonReady, zmtp.ReasonSocketType, zmtp.ReasonPeerError, zmtp.ReasonInternal,
	} {
		names = append(names, string(reason))
	}
	for _, name := range names {
		assert.Contains(t, text, "`"+name+"`")
	}
	generated, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	metrics := regexp.MustCompile("(?m)^### otelcol_receiver_metric_event(_[a-z_]+)").FindAllStringSubmatch(string(generated), -1)
	require.NotEmpty(t, metrics)
	for _, metric := range metrics {
		assert.Contains(t, text, "`…"+metric[1])
	}
}
