// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import "github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"

const (
	protocolKey  = "measurement_protocol"
	executionKey = "execution_evidence"
)

func protocolOf(a *Artifact) document.Value { return a.Root.Get(protocolKey) }

func contractOf(a *Artifact) document.Value { return protocolOf(a).Get(executionKey) }

func checkProtocolVersion(_ *Checker, a *Artifact, r *report) {
	if protocol := protocolOf(a); protocol.Exists() {
		r.number(protocolKey+".schema_version", 1, protocol.Get("schema_version"))
	}
}

func checkProtocolEqual(c *Checker, a *Artifact, r *report) {
	if a == c.reference {
		return
	}
	want, got := protocolOf(c.reference), protocolOf(a)
	if r.holds(document.Equal(want, got)) {
		return
	}
	// The values of the whole block are too long to show what differs.
	if differences := Differences(protocolKey, want, got, nil); len(differences) > 0 {
		first := differences[0]
		r.violated(first.Field, first.A, first.B)
		return
	}
	r.violated(protocolKey, want.Short(), got.Short())
}

func checkExecutionContract(_ *Checker, a *Artifact, r *report) {
	contract := contractOf(a)
	if !contract.Exists() {
		return
	}
	const path = protocolKey + "." + executionKey + "."
	r.number(path+"schema_version", 1, contract.Get("schema_version"))
	r.is(oneOf(contract.Get("sample_field"), sampleKey), path+"sample_field", `"`+sampleKey+`"`, contract.Get("sample_field"))
	r.is(oneOf(contract.Get("warmup_field"), warmupKey), path+"warmup_field", `"`+warmupKey+`"`, contract.Get("warmup_field"))
}

func checkEngineIdentity(c *Checker, a *Artifact, r *report) {
	engine := a.Root.Get("engine")
	if degraded(engine) {
		return
	}
	if !c.engine.Exists() {
		c.engine = engine.Detach()
		return
	}
	differences := EngineDifferences(c.engine, engine)
	if r.holds(len(differences) == 0) {
		return
	}
	first := differences[0]
	r.violated(first.Field, first.A, first.B+more(len(differences)-1))
}
