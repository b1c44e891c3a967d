// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmbenchmarkreceiver/internal/metadata"
)

// source is a run about to be delivered: what all its batches share.
type source struct {
	run *benchmark.Run
	// reference is the first file, which a merged run's events come from.
	reference *benchmark.Artifact
	resource  pcommon.Resource
	// time is the run's completion time, observed when it was delivered.
	time, observed pcommon.Timestamp
	version        string
}

func newSource(r *benchmarkReceiver, run *benchmark.Run, reference *benchmark.Artifact, now time.Time) *source {
	s := &source{
		run: run, reference: reference, resource: pcommon.NewResource(),
		time: pcommon.NewTimestampFromTime(now), observed: pcommon.NewTimestampFromTime(now),
		version: r.settings.BuildInfo.Version,
	}
	if !run.CompletedAt.IsZero() {
		s.time = pcommon.NewTimestampFromTime(run.CompletedAt)
	}
	fillResource(s.resource.Attributes(), r.config, r.hostname, run)
	return s
}

// maxIdentity bounds the attributes that come from the engine block; all of it
// is in the engine event. Dynamo's blocks have about 40 scalar fields.
const maxIdentity = 128

func fillResource(attributes pcommon.Map, config *Config, hostname string, run *benchmark.Run) {
	instance := run.WorkerID
	if instance == "" {
		instance = hostname
	}
	attributes.PutStr("service.namespace", config.Namespace)
	attributes.PutStr("service.name", config.Component)
	attributes.PutStr("service.instance.id", short(instance))
	attributes.PutStr("fpm.worker_id", short(run.WorkerID))
	putGiven(attributes, "fpm.benchmark.run_id", run.ID)
	putGiven(attributes, "fpm.benchmark.grid_digest", run.GridDigest)
	attributes.PutStr("fpm.benchmark.status", run.Status)
	count := 0
	for field, value := range run.Engine.Identity() {
		if count++; count > maxIdentity {
			break
		}
		to := attributes.PutEmpty(short(engineAttribute + field))
		if putValue(to, value); to.Type() == pcommon.ValueTypeStr {
			to.SetStr(short(to.Str()))
		}
	}
	if probe := run.Engine.Probe; probe != nil {
		attributes.PutStr(engineAttribute+"resolution", short(probe.Resolution))
		// What not every worker said must not stand for all of them.
		if probe.Complete() {
			putResolved(attributes, probe)
		}
	}
	for name, value := range config.ResourceAttributes {
		_ = attributes.PutEmpty(name).FromRaw(value) // Validate has checked the type
	}
}

const engineAttribute = "fpm.engine."

// putResolved adds what a probe resolved, with its scope and resolution. A probe
// that resolved nothing adds nothing.
func putResolved(attributes pcommon.Map, probe *benchmark.Probe) {
	if probe == nil || probe.Scope == "" {
		return
	}
	attributes.PutStr(engineAttribute+"resolution", short(probe.Resolution))
	attributes.PutStr(engineAttribute+"resolved_scope", probe.Scope)
	for name, value := range map[string]document.Value{
		"attention.backend_resolved":             probe.Attention.Get("backend_resolved"),
		"attention.mla_prefill_backend_resolved": probe.Attention.Get("mla_prefill_backend_resolved"),
		"cudagraph_mode_resolved":                probe.Resolved.Get("cudagraph_mode_resolved"),
	} {
		text, _ := value.Text()
		putGiven(attributes, engineAttribute+name, text)
	}
}

func putGiven(attributes pcommon.Map, name, value string) {
	if value != "" {
		attributes.PutStr(name, short(value))
	}
}

func putInt(attributes pcommon.Map, name string, value *int64) {
	if value != nil {
		attributes.PutInt(name, *value)
	}
}

// putRank adds the rank, unless the file does not say it.
func putRank(attributes pcommon.Map, rank int) {
	if rank != benchmark.NoRank {
		attributes.PutInt("fpm.dp_rank", int64(rank))
	}
}

// putValue copies a JSON value. A number that no 64-bit integer holds becomes a
// double.
func putValue(to pcommon.Value, value document.Value) {
	switch value.Kind() {
	case document.Bool:
		b, _ := value.Bool()
		to.SetBool(b)
	case document.Number:
		if i, ok := value.Int(); ok {
			to.SetInt(i)
		} else {
			f, _ := value.Float()
			to.SetDouble(f)
		}
	case document.String:
		text, _ := value.Text()
		to.SetStr(text)
	case document.Array:
		items := to.SetEmptySlice()
		for _, item := range value.Items() {
			putValue(items.AppendEmpty(), item)
		}
	case document.Object:
		putMembers(to.SetEmptyMap(), value)
	}
}

// putMembers copies the members of an object in their order.
func putMembers(to pcommon.Map, object document.Value) {
	to.EnsureCapacity(object.Len())
	for key, member := range object.Members() {
		putValue(to.PutEmpty(key), member)
	}
}

// putPoint adds the coordinates of a point.
func putPoint(attributes pcommon.Map, p *benchmark.Point) {
	putRank(attributes, p.Rank)
	attributes.PutInt("fpm.benchmark.id", p.ID)
	putGiven(attributes, "fpm.benchmark.point_type", p.Type)
	putInt(attributes, "fpm.benchmark.batch_size", p.BatchSize)
	putInt(attributes, "fpm.benchmark.prefill_tokens", p.PrefillTokens)
	putInt(attributes, "fpm.benchmark.kv_read_tokens", p.KVReadTokens)
	putGiven(attributes, "fpm.benchmark.expected_cudagraph_mode", p.ExpectedCUDAGraphMode)
	putInt(attributes, "fpm.benchmark.expected_capture_size", p.ExpectedCaptureSize)
}

func (s *source) setScope(scope pcommon.InstrumentationScope) {
	scope.SetName(metadata.ScopeName)
	scope.SetVersion(s.version)
}

// short cuts a text of a file for an attribute; bodies have it whole.
func short(text string) string {
	const most = 1024
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
