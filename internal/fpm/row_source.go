// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Source is whom a row comes from, as Dynamo names it. All three are UTF-8.
type Source struct {
	// Namespace is the resource's service.namespace.
	Namespace string
	// Component is its service.name.
	Component string
	// ProducerID is its service.instance.id; rows of one producer share files.
	ProducerID string
}

// SourceOf reads the source from a resource. What the resource does not say is
// empty.
func SourceOf(resource pcommon.Resource) Source {
	attributes := resource.Attributes()
	return Source{
		Namespace:  textAttribute(attributes, AttrServiceNamespace),
		Component:  textAttribute(attributes, AttrServiceName),
		ProducerID: textAttribute(attributes, AttrServiceInstanceID),
	}
}

// textAttribute reads an attribute as text; JSON can hold no other than UTF-8.
func textAttribute(attributes pcommon.Map, key string) string {
	value, ok := attributes.Get(key)
	if !ok {
		return ""
	}
	return strings.ToValidUTF8(value.AsString(), "\uFFFD")
}
