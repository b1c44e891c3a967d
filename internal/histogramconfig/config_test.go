// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package histogramconfig

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

func exponential(maxSize int32) configoptional.Optional[ExponentialConfig] {
	return configoptional.Some(ExponentialConfig{MaxSize: maxSize})
}

func TestCheck(t *testing.T) {
	const order = ", want finite bounds in seconds, strictly increasing"
	for name, test := range map[string]struct {
		config Config
		want   []string
	}{
		"default":         {Default(), nil},
		"one bound":       {Config{Bounds: []float64{0}}, nil},
		"no bound":        {Config{Bounds: []float64{}}, []string{"histogram::bounds: got [], want at least one bound"}},
		"equal bounds":    {Config{Bounds: []float64{1, 2, 2}}, []string{"histogram::bounds::2: got 2" + order}},
		"falling bounds":  {Config{Bounds: []float64{2, 1}}, []string{"histogram::bounds::1: got 1" + order}},
		"infinite bounds": {Config{Bounds: []float64{math.Inf(-1), 1, math.Inf(1)}}, []string{"histogram::bounds::0: got -Inf" + order, "histogram::bounds::2: got +Inf" + order}},
		"no number":       {Config{Bounds: []float64{math.NaN()}}, []string{"histogram::bounds::0: got NaN" + order}},
		"both":            {Config{Bounds: []float64{1}, Exponential: exponential(160)}, []string{"histogram: got bounds and exponential, want exactly one of the two"}},
		"smallest size":   {Config{Exponential: exponential(2)}, nil},
		"largest size":    {Config{Exponential: exponential(16384)}, nil},
		"size too small":  {Config{Exponential: exponential(1)}, []string{"histogram::exponential::max_size: got 1, want 2 to 16384"}},
		"size too large":  {Config{Exponential: exponential(16385)}, []string{"histogram::exponential::max_size: got 16385, want 2 to 16384"}},
		"all that is bad": {Config{Bounds: []float64{}, Exponential: exponential(0)}, []string{
			"histogram: got bounds and exponential, want exactly one of the two",
			"histogram::bounds: got [], want at least one bound",
			"histogram::exponential::max_size: got 0, want 2 to 16384",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			test.config.Check(func(key, value, allowed string) { got = append(got, key+": got "+value+", want "+allowed) })
			assert.Equal(t, test.want, got)
		})
	}
}

func TestForm(t *testing.T) {
	for name, test := range map[string]struct {
		keys map[string]any
		want *fpm.HistogramForm
	}{
		"neither":             {nil, fpm.ExplicitForm(defaultBounds)},
		"bounds":              {map[string]any{"bounds": []any{0.01, 1}}, fpm.ExplicitForm([]float64{0.01, 1})},
		"exponential":         {map[string]any{"exponential": map[string]any{}}, fpm.ExponentialForm(160)},
		"exponential of size": {map[string]any{"exponential": map[string]any{"max_size": 20}}, fpm.ExponentialForm(20)},
	} {
		t.Run(name, func(t *testing.T) {
			config := Default()
			require.NoError(t, confmap.NewFromStringMap(test.keys).Unmarshal(&config))
			assert.Equal(t, test.want, config.Form())
		})
	}
}
