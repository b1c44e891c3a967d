// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// FuzzReadRow: what is accepted is JSON to encoding/json too, and means the
// same to it, number by number and key by key.
func FuzzReadRow(f *testing.F) {
	files, err := filepath.Glob("testdata/row/*.jsonl")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(publicExample))
	f.Add([]byte(publicExample[strings.Index(publicExample, `{"version"`) : len(publicExample)-2]))
	f.Add([]byte(`{"event":{"schema":"dynamo.request.trace.v1"}}`))
	reader := new(RowReader)
	f.Fuzz(func(t *testing.T, line []byte) {
		before := slices.Clone(line)
		row, _, err := new(RowReader).Read(nil, line)
		again, _, errAgain := reader.Read([]byte("x"), line)
		require.Equal(t, err, errAgain)
		require.Equal(t, row, again)
		require.Equal(t, before, line)
		if err != nil {
			assertRowRejection(t, err)
			return
		}
		require.True(t, json.Valid(line))
		assertInvariants(t, &row.Record)

		body := pcommon.NewValueMap()
		NewBodyWriter().Fill(body.Map(), &row.Record)
		record := line
		if !row.Flat {
			record = sameEnvelope(t, &row.Envelope, line)
		}
		require.Equal(t, jsonReference(t, record), any(orderedBody(body.Map())))

		_, err = ValidateBody(body)
		require.NoError(t, err, "what is read can be written")
		if !row.Flat {
			rewritten := rewrite(t, &row)
			second := readRow(t, rewritten)
			require.Equal(t, rewritten, rewrite(t, &second))
		}
	})
}

// sameEnvelope compares what is around the record, and returns the record's
// text.
func sameEnvelope(t *testing.T, envelope *Envelope, line []byte) json.RawMessage {
	event := lastValues(t, lastValues(t, line)["event"])
	source := lastValues(t, event["source"])
	for text, want := range map[string]any{
		string(event["schema"]):              Schema,
		string(event["capture_mode"]):        envelope.CaptureMode,
		string(event["observed_at_unix_ms"]): envelope.ObservedAt,
		string(source["namespace"]):          envelope.Namespace,
		string(source["component"]):          envelope.Component,
		string(source["producer_id"]):        envelope.ProducerID,
	} {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var got any
		require.NoError(t, decoder.Decode(&got))
		if number, ok := got.(json.Number); ok {
			parsed, err := number.Int64()
			require.NoError(t, err)
			got = parsed
		}
		require.Equal(t, want, got)
	}
	return event["fpm"]
}

// lastValues reads an object into a map, whose keys are exact, unlike those of a
// struct.
func lastValues(t *testing.T, text []byte) (values map[string]json.RawMessage) {
	require.NoError(t, json.Unmarshal(text, &values))
	return values
}

// jsonReference reads a JSON value with encoding/json.
func jsonReference(t *testing.T, text []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	value := jsonValue(t, decoder)
	_, err := decoder.Token()
	require.ErrorIs(t, err, io.EOF)
	return value
}

func jsonValue(t *testing.T, decoder *json.Decoder) any {
	token, err := decoder.Token()
	require.NoError(t, err)
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			array := []any{}
			for decoder.More() {
				array = append(array, jsonValue(t, decoder))
			}
			_, err = decoder.Token()
			require.NoError(t, err)
			return array
		}
		object := ordered{}
		for decoder.More() {
			key, err := decoder.Token()
			require.NoError(t, err)
			object = object.put(key.(string), jsonValue(t, decoder))
		}
		_, err = decoder.Token()
		require.NoError(t, err)
		return object
	case json.Number:
		if !strings.ContainsAny(string(token), ".eE") {
			value, err := strconv.ParseInt(string(token), 10, 64)
			require.NoError(t, err)
			return value
		}
		value, err := strconv.ParseFloat(string(token), 64)
		require.NoError(t, err)
		return toDouble(value)
	default:
		return token
	}
}
