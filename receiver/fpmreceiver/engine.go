// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// engine is one configured engine: what the workers heard on its endpoints have
// in common.
type engine struct {
	base       address
	namespace  string
	component  string
	instance   string // names workers that do not name themselves, and the endpoints
	attributes map[string]any
}

// workerResource describes a worker: the payload's worker_id, and the name it
// has here.
func (e *engine) workerResource(workerID, instance string) pcommon.Resource {
	resource := pcommon.NewResource()
	e.identify(resource.Attributes(), instance)
	resource.Attributes().PutStr(fpm.AttrWorkerID, workerID)
	e.adorn(resource.Attributes())
	return resource
}

// endpointResource describes the engine's endpoints, not a worker.
func (e *engine) endpointResource(dst pcommon.Resource) {
	e.identify(dst.Attributes(), e.instance)
	e.adorn(dst.Attributes())
}

func (e *engine) identify(dst pcommon.Map, instance string) {
	dst.PutStr(fpm.AttrServiceNamespace, e.namespace)
	dst.PutStr(fpm.AttrServiceName, e.component)
	dst.PutStr(fpm.AttrServiceInstanceID, instance)
	if e.base.network == "tcp" {
		dst.PutStr(fpm.AttrServerAddress, e.base.host)
		dst.PutInt(fpm.AttrServerPort, int64(e.base.port))
	}
}

// adorn puts the configured attributes, which may override all others.
func (e *engine) adorn(dst pcommon.Map) {
	for key, value := range e.attributes {
		// Validate let only scalars through, which FromRaw takes.
		_ = dst.PutEmpty(key).FromRaw(value)
	}
}
