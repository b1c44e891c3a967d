// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-fpm/otelcol-fpm/processor/gaugededupprocessor/internal/metadata"
)

func nopSettings() processor.Settings {
	set := processortest.NewNopSettings(metadata.Type)
	set.ID = component.NewID(metadata.Type)
	return set
}

type consumerBase struct{}

func (consumerBase) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}
