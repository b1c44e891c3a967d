// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/otelcol-fpm/otelcol-fpm/internal/histogramconfig"
)

// keysOf lists the keys of a configuration, dotted.
func keysOf(t reflect.Type, prefix string) (keys []string) {
	for i := range t.NumField() {
		field := t.Field(i)
		key := prefix + field.Tag.Get("mapstructure")
		switch {
		case field.Type == reflect.TypeFor[configoptional.Optional[histogramconfig.ExponentialConfig]]():
			keys = append(keys, key)
			keys = append(keys, keysOf(reflect.TypeFor[histogramconfig.ExponentialConfig](), key+".")...)
		case field.Type.Kind() == reflect.Struct:
			keys = append(keys, keysOf(field.Type, key+".")...)
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

// TestREADMEKeys: the table has every key, and no other.
func TestREADMEKeys(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	section, _, _ := strings.Cut(string(text), "## Which files")
	var documented []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|").FindAllStringSubmatch(section, -1) {
		documented = append(documented, match[1])
	}
	assert.Equal(t, keysOf(reflect.TypeFor[Config](), ""), documented)
}

// TestREADMETelemetry: the table has every metric of the receiver's own, and the
// text every reason and outcome.
func TestREADMETelemetry(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	generated, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	var names []string
	for _, match := range regexp.MustCompile(`(?m)^### (otelcol_\w+)$`).FindAllStringSubmatch(string(generated), -1) {
		names = append(names, match[1])
	}
	require.Len(t, names, 9)
	for _, name := range names {
		assert.Contains(t, string(readme), "| `"+name, name)
	}
	for _, word := range slices.Concat(
		[]string{"malformed", "schema", "out_of_range", "unsupported_version", rejectedOversize, droppedRefused},
		[]string{skippedTorn, skippedCorrupt, skippedRemoved, memberWhole, "accepted", "no_envelope", "rejected"},
	) {
		assert.Contains(t, string(readme), "`"+word+"`", word)
	}
}
