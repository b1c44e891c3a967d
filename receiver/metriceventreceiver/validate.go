// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// Validate reports all problems at once, each with its key path, the value and
// what is allowed. It looks at nothing but the values.
func (c *Config) Validate() error {
	var problems problemList
	if _, err := parseEndpoint(c.Endpoint); err != nil {
		problems.add("endpoint", quoteShort([]byte(c.Endpoint)), err.Error())
	}
	if _, err := parsePermissions(c.IPCPermissions); err != nil {
		problems.add("ipc_permissions", quoteShort([]byte(c.IPCPermissions)), err.Error())
	}
	problems.between("max_message_bytes", c.MaxMessageBytes, 1, maxMessageBytesLimit)
	problems.between("max_connections", int64(c.MaxConnections), 1, math.MaxInt32)
	problems.between("max_producers", int64(c.MaxProducers), 1, math.MaxInt32)
	problems.positive("producer_ttl", c.ProducerTTL)
	problems.between("max_series", int64(c.MaxSeries), 1, math.MaxInt32)
	problems.positive("series_ttl", c.SeriesTTL)
	problems.positive("batch::timeout", c.Batch.Timeout)
	problems.between("batch::max_events", int64(c.Batch.MaxEvents), 1, maxBatchEvents)
	for i := range c.Catalog {
		problems.catalog(fmt.Sprintf("catalog::%d::", i), &c.Catalog[i])
	}
	problems.attributes(c.ResourceAttributes)
	return errors.Join(problems...)
}

// maxMessageBytesLimit keeps a message within what one allocation may be.
const maxMessageBytesLimit = 1 << 30

// problemList collects what is wrong with a configuration.
type problemList []error

func (p *problemList) add(key, got, want string) {
	*p = append(*p, fmt.Errorf("%s: got %s, want %s", key, got, want))
}

func (p *problemList) between(key string, value, least, most int64) {
	if value < least || value > most {
		p.add(key, strconv.FormatInt(value, 10), fmt.Sprintf("%d to %d", least, most))
	}
}

func (p *problemList) positive(key string, value time.Duration) {
	if value <= 0 {
		p.add(key, value.String(), "more than 0s")
	}
}

func (p *problemList) catalog(key string, c *CatalogConfig) {
	if c.Metric == "" {
		p.add(key+"metric", `""`, "a metric name, with * for any text and ? for any one character")
	}
	if c.Unit == "" && c.Description == "" && c.Bounds == nil {
		p.add(key+"metric", quoteShort([]byte(c.Metric))+" alone", "unit, description or bounds beside it")
	}
	if c.Bounds != nil && len(c.Bounds) == 0 {
		p.add(key+"bounds", "[]", "at least one bound")
	}
	for i, bound := range c.Bounds {
		if !finite(bound) || i > 0 && bound <= c.Bounds[i-1] {
			p.add(fmt.Sprintf("%sbounds::%d", key, i), fmt.Sprint(bound), "finite bounds, strictly increasing")
		}
	}
}

func (p *problemList) attributes(attributes map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		key := "resource_attributes::" + name
		switch value := attributes[name].(type) {
		case string, bool, int, int64, float64:
			if name == attrServiceInstanceID {
				p.add(key, fmt.Sprintf("%v", value), "another key: host:pid:start_ns tells the producers apart")
			}
		default:
			p.add(key, fmt.Sprintf("%v", value), "a string, number or boolean")
		}
	}
}
