// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tenth is a variable: constants are added up exactly.
var tenth = 0.1

func TestAppendFloat(t *testing.T) {
	for _, test := range []struct {
		value float64
		want  string
	}{
		{0, "0.0"},
		{math.Copysign(0, -1), "-0.0"},
		{1, "1.0"},
		{100, "100.0"},
		{-100, "-100.0"},
		{tenth + 0.2, "0.30000000000000004"},
		{float64(float32(0.025)), "0.02500000037252903"},
		{0.0123, "0.0123"},
		{1e-5, "0.00001"},
		{0.000012345, "0.000012345"},
		{math.Nextafter(1e-5, 0), "9.999999999999999e-6"},
		{1e-6, "1e-6"},
		{-1.5e-7, "-1.5e-7"},
		{1e-10, "1e-10"},
		{5e-324, "5e-324"},
		{1e15, "1000000000000000.0"},
		{1234567890123456, "1234567890123456.0"},
		{math.Nextafter(1e16, 0), "9999999999999998.0"},
		{1e16, "1e+16"},
		{1.5e16, "1.5e+16"},
		{1e21, "1e+21"},
		{6.07e61, "6.07e+61"},
		{1e100, "1e+100"},
		{math.MaxFloat64, "1.7976931348623157e+308"},
		{math.NaN(), "null"},
		{math.Inf(1), "null"},
		{math.Inf(-1), "null"},
	} {
		assert.Equal(t, test.want, string(appendFloat(nil, test.value)))
	}
}

func TestAppendString(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", `""`},
		{"gpu-7:20380", `"gpu-7:20380"`},
		{`say "no" \ yes`, `"say \"no\" \\ yes"`},
		{"\b\t\n\f\r", `"\b\t\n\f\r"`},
		{"\x00\x01\x1b\x1f", `"\u0000\u0001\u001b\u001f"`},
		{"\x7f", "\"\x7f\""},
		{"\u2028\u2029", "\"\u2028\u2029\""},
		{"</script>&", `"</script>&"`},
		{"Grüße 世界 🚀", `"Grüße 世界 🚀"`},
	} {
		assert.Equal(t, test.want, string(appendString(nil, test.text)))
	}
}

func FuzzAppendFloat(f *testing.F) {
	for _, value := range []float64{0, 1, 1e-6, 1e16, 5e-324, 0.1, 123456789, math.MaxFloat64} {
		f.Add(math.Float64bits(value))
	}
	f.Fuzz(func(t *testing.T, bits uint64) { checkFloatText(t, bits) })
}

// TestFloatTextReadsBack tries random bit patterns on every run, the fuzz
// target tries more.
func TestFloatTextReadsBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		checkFloatText(t, random.Uint64())
		checkFloatText(t, math.Float64bits(random.Float64()*math.Pow(10, float64(random.IntN(40)-20))))
	}
}

func checkFloatText(t *testing.T, bits uint64) {
	t.Helper()
	value := math.Float64frombits(bits)
	text := string(appendFloat(nil, value))
	if math.IsNaN(value) || math.IsInf(value, 0) {
		require.Equal(t, "null", text)
		return
	}
	require.True(t, json.Valid([]byte(text)), text)
	back, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	require.Equal(t, bits, math.Float64bits(back), text)
	require.True(t, strings.ContainsAny(text, ".e"), "%s reads back as an integer", text)
	require.NotContains(t, text, "e+0")
	require.NotContains(t, text, "e-0")
}

func FuzzAppendString(f *testing.F) {
	for _, text := range []string{"", "a\"b", "\x00\x1f\x7f", "\u2028", "\\u0041"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("not UTF-8")
		}
		encoded := appendString(nil, text)
		var back string
		require.NoError(t, json.Unmarshal(encoded, &back))
		require.Equal(t, text, back)
		for _, c := range encoded {
			require.GreaterOrEqual(t, c, byte(' '), "a raw control character would break the line")
		}
	})
}
