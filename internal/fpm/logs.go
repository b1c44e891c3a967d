// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// AppendLog adds the log record of one forward pass: the lossless form, whose
// body becomes the trace row as it stands.
func AppendLog(scope plog.ScopeLogs, body *BodyWriter, record *Record, sequence int64, now pcommon.Timestamp) {
	entry := scope.LogRecords().AppendEmpty()
	entry.SetTimestamp(now)
	entry.SetObservedTimestamp(now)
	entry.SetEventName(EventForwardPass)
	attributes := entry.Attributes()
	attributes.EnsureCapacity(3)
	record.Attributes().Put(attributes)
	attributes.PutInt(AttrSequence, sequence)
	body.Fill(entry.Body().SetEmptyMap(), record)
}
