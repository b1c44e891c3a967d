// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// AppendRowLog adds the log record of a row. It differs from AppendLog in that
// a row has no sequence number, but, with an envelope, a capture mode.
func AppendRowLog(scope plog.ScopeLogs, body *BodyWriter, row *Row, at pcommon.Timestamp) {
	entry := scope.LogRecords().AppendEmpty()
	entry.SetTimestamp(at)
	entry.SetObservedTimestamp(at)
	entry.SetEventName(EventForwardPass)
	attributes := entry.Attributes()
	attributes.EnsureCapacity(3)
	row.Record.Attributes().Put(attributes)
	if !row.Flat {
		attributes.PutStr(AttrCaptureMode, row.CaptureMode)
	}
	body.Fill(entry.Body().SetEmptyMap(), &row.Record)
}
