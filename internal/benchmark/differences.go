// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import "github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"

// Difference is one field that two values do not share.
type Difference struct {
	// Field is dotted, from the top of the artifact.
	Field string
	// A and B are the two values, as text, cut when long.
	A, B string
}

// maxDifferences is how many fields Differences names.
const maxDifferences = 100

// Differences lists the fields in which a and b differ: objects are compared
// member by member, all else as a whole. field is the path of a and b. Fields
// for which except says true are left out; except may be nil.
func Differences(field string, a, b document.Value, except func(field string) bool) []Difference {
	var found []Difference
	differ(field, a, b, except, &found)
	return found
}

func differ(field string, a, b document.Value, except func(string) bool, found *[]Difference) {
	if except != nil && except(field) || len(*found) >= maxDifferences {
		return
	}
	if a.Kind() != document.Object || b.Kind() != document.Object {
		if !document.Equal(a, b) {
			*found = append(*found, Difference{Field: field, A: a.Short(), B: b.Short()})
		}
		return
	}
	others := make(map[string]document.Value)
	for key, other := range b.Members() {
		others[key] = other
	}
	for key, member := range a.Members() {
		differ(field+"."+key, member, others[key], except, found)
		delete(others, key)
	}
	for key, other := range b.Members() {
		if _, left := others[key]; left {
			differ(field+"."+key, document.Value{}, other, except, found)
		}
	}
}

// degraded reports whether an engine block says nothing that may be compared:
// it is absent, or its capture failed half way.
func degraded(engine document.Value) bool {
	return engine.Kind() != document.Object || engine.Get("capture_error").Exists()
}

// afterRun are the fields of engine that are no identity: they are another for
// each rank, or known only after the run.
var afterRun = map[string]bool{
	"engine.resolved":                               true,
	"engine.resolved_scope":                         true,
	"engine.resolution":                             true,
	"engine.worker_probe":                           true,
	"engine.capture_errors":                         true,
	"engine.attention.backend_resolved":             true,
	"engine.attention.mla_prefill_backend_resolved": true,
	"engine.attention.resolution":                   true,
	"engine.parallel.data_parallel_rank":            true,
}

// EngineDifferences lists the fields in which the identities of two engine
// blocks differ.
func EngineDifferences(a, b document.Value) []Difference {
	return Differences("engine", a, b, func(field string) bool { return afterRun[field] })
}
