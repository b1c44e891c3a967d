// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// assertInvariants holds what Record says of itself.
func assertInvariants(t testing.TB, record *Record) {
	counts := []int64{record.DPRank, record.CounterID}
	measures := []float64{record.WallTime}
	for _, group := range []Requests{record.Scheduled, record.Queued} {
		counts = append(counts, group.NumPrefillRequests, group.SumPrefillTokens, group.SumPrefillKVTokens,
			group.NumDecodeRequests, group.SumDecodeKVTokens)
		measures = append(measures, group.VarPrefillLength, group.VarDecodeKVTokens)
	}
	require.GreaterOrEqual(t, slices.Min(counts), int64(0))
	for _, measure := range measures {
		require.True(t, measure >= 0 && measure <= math.MaxFloat64, "%v", measure)
	}
	require.Zero(t, record.Queued.SumPrefillKVTokens)

	// Payload walks without an error, from end to end.
	var w walker
	w.Reset(record.Payload)
	require.Nil(t, w.skip(1))
	require.Zero(t, w.Left())
}

func TestRecordInvariants(t *testing.T) {
	random := randomMessages{rand.New(rand.NewPCG(3, 3))}
	for range 1000 {
		record := decodeValid(t, random.message().encode())
		assertInvariants(t, &record)
	}
	largest := validMap()
	for _, field := range countFields {
		largest = largest.set(field, int64(math.MaxInt64))
	}
	for _, field := range measureFields {
		largest = largest.set(field, math.MaxFloat64)
	}
	for _, message := range []wireMap{largest, heartbeatMap(), fullMap(), validMap().set("queued_requests.sum_prefill_kv_tokens", 7)} {
		record := decodeValid(t, message.encode())
		assertInvariants(t, &record)
	}
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/wire/*.hex")
	require.NoError(f, err)
	for _, file := range files {
		f.Add(fixture(f, strings.TrimSuffix(filepath.Base(file), ".hex")), int64(1), true)
	}
	f.Add(fullMap().encode(), int64(math.MaxInt64), false)
	random := randomMessages{rand.New(rand.NewPCG(5, 5))}
	for range 10 {
		f.Add(random.message().encode(), int64(0), true)
	}
	// Both remember: what they answer must not depend on what they saw before.
	decoder, writer := NewDecoder(true), NewBodyWriter()
	f.Fuzz(func(t *testing.T, payload []byte, sequence int64, acceptUnversioned bool) {
		sequence &= math.MaxInt64 // as OpenEnvelope gives it
		before := slices.Clone(payload)
		record, err := NewDecoder(acceptUnversioned).Decode(payload, sequence)
		decoder.AcceptUnversioned = acceptUnversioned
		again, errAgain := decoder.Decode(payload, sequence)
		require.Equal(t, err, errAgain)
		require.Equal(t, before, payload)
		if err != nil {
			assertRejection(t, err)
			return
		}
		require.Equal(t, record, again)
		assertInvariants(t, &record)
		require.True(t, acceptUnversioned || !record.Unversioned)

		body := pcommon.NewMap()
		writer.Fill(body, &record)
		assertBodyIsPayload(t, &record, orderedBody(body))
		assertRecordIsBody(t, &record, orderedBody(body))
	})
}

func FuzzOpenEnvelope(f *testing.F) {
	f.Add(3, []byte{}, []byte{0, 0, 0, 0, 0, 0, 0, 1}, []byte("payload"))
	f.Add(4, []byte("topic"), []byte("a"), []byte("b"))
	f.Add(3, []byte{}, []byte{0x80, 0, 0, 0, 0, 0, 0, 0}, []byte{})
	f.Fuzz(func(t *testing.T, n int, topic, sequenceFrame, payload []byte) {
		frames := [][]byte{topic, sequenceFrame, payload, payload}
		frames = frames[:max(0, min(n, len(frames)))]
		sequence, got, err := OpenEnvelope(frames)
		if err != nil {
			assertRejection(t, err)
			return
		}
		require.Len(t, frames, 3)
		require.Empty(t, topic)
		require.Equal(t, payload, got)
		require.Equal(t, sequenceFrame, binary.BigEndian.AppendUint64(nil, uint64(sequence)))
		require.GreaterOrEqual(t, sequence, int64(0))
	})
}

func assertRejection(t testing.TB, err error) {
	rejected, ok := err.(*RejectError)
	require.True(t, ok, "%T", err)
	assert.Contains(t, []Reason{ReasonEnvelope, ReasonMalformed, ReasonOutOfRange, ReasonUnsupportedVersion}, rejected.Reason)
	assert.NotEmpty(t, rejected.Field)
	assert.NotEmpty(t, rejected.Got)
	assert.NotEmpty(t, rejected.Want)
	assertShortLine(t, rejected)
}
