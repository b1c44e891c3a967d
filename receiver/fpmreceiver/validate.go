// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

func endpointPath(i int) string { return fmt.Sprintf("endpoints::%d::", i) }

// Validate reports all problems at once, each with its key path, the value and
// what is allowed.
func (c *Config) Validate() error {
	var problems problemList

	if c.Endpoint == "" && len(c.Endpoints) == 0 {
		problems.add("endpoint", `""`, "an endpoint here or under endpoints, such as 127.0.0.1:20380 or ipc:///tmp/sglang-fpm")
	}
	if c.Endpoint == "" && (c.DPSize != 1 || c.DPStartRank != 0) {
		problems.add("dp_size", fmt.Sprintf("dp_size %d and dp_start_rank %d without endpoint", c.DPSize, c.DPStartRank),
			"an endpoint beside them; they do not apply to endpoints")
	}
	problems.name("namespace", c.Namespace)
	problems.name("component", c.Component)
	problems.attributes("", c.ResourceAttributes)
	for i := range c.Endpoints {
		problems.attributes(endpointPath(i), c.Endpoints[i].ResourceAttributes)
	}
	taken := map[string]string{}
	for _, engine := range c.engines() {
		problems.engine(engine, taken)
	}

	problems.duration("batch::timeout", c.Batch.Timeout)
	problems.positive("batch::max_messages", int64(c.Batch.MaxMessages))
	if c.GaugeInterval != 0 && c.GaugeInterval < time.Millisecond {
		problems.add("gauge_interval", c.GaugeInterval.String(), "0s, or 1ms or more, with its unit")
	}
	problems.duration("stale_after", c.StaleAfter)
	problems.duration("rank_ttl", c.RankTTL)
	if c.RankTTL > 0 && c.RankTTL < c.StaleAfter {
		problems.add("rank_ttl", c.RankTTL.String(), fmt.Sprintf("at least stale_after (%s)", c.StaleAfter))
	}
	problems.positive("max_ranks", int64(c.MaxRanks))
	problems.positive("queue_size", int64(c.QueueSize))
	problems.positive("queue_bytes", c.QueueBytes)
	problems.positive("max_message_bytes", c.MaxMessageBytes)
	if c.QueueBytes > 0 && c.MaxMessageBytes > c.QueueBytes {
		problems.add("max_message_bytes", strconv.FormatInt(c.MaxMessageBytes, 10), fmt.Sprintf("at most queue_bytes (%d)", c.QueueBytes))
	}
	problems.duration("dial::timeout", c.Dial.Timeout)
	problems.duration("dial::initial_backoff", c.Dial.InitialBackoff)
	problems.duration("dial::max_backoff", c.Dial.MaxBackoff)
	if c.Dial.MaxBackoff > 0 && c.Dial.MaxBackoff < c.Dial.InitialBackoff {
		problems.add("dial::max_backoff", c.Dial.MaxBackoff.String(), fmt.Sprintf("at least initial_backoff (%s)", c.Dial.InitialBackoff))
	}
	c.Histogram.Check(problems.add)
	return errors.Join(problems...)
}

// problemList collects what is wrong with a configuration.
type problemList []error

func (p *problemList) add(key, got, want string) {
	*p = append(*p, fmt.Errorf("%s: got %s, want %s", key, got, want))
}

func (p *problemList) positive(key string, value int64) {
	if value < 1 {
		p.add(key, strconv.FormatInt(value, 10), "1 or more")
	}
}

// duration checks a time to wait. A number without a unit is nanoseconds to the
// decoder, which nobody means.
func (p *problemList) duration(key string, value time.Duration) {
	if value < time.Millisecond {
		p.add(key, value.String(), "1ms or more, with its unit")
	}
}

func (p *problemList) name(key, value string) {
	if value == "" {
		p.add(key, `""`, "a name")
	}
}

// engine checks the addresses of one engine and notes them in taken, by which
// two engines that expand to the same address are found.
func (p *problemList) engine(engine namedEngine, taken map[string]string) {
	settings, key := engine.config, engine.name
	p.positive(key+"dp_size", int64(settings.DPSize))
	if settings.DPStartRank < 0 {
		p.add(key+"dp_start_rank", strconv.Itoa(settings.DPStartRank), "0 or more")
	}
	base, err := parseEndpoint(settings.Endpoint)
	if err != nil {
		p.add(key+"endpoint", fmt.Sprintf("%q", settings.Endpoint), err.Error())
		return
	}
	if settings.DPSize < 1 || settings.DPStartRank < 0 {
		return // nothing to expand
	}
	addresses, err := base.expand(settings.DPStartRank, settings.DPSize)
	if err != nil {
		p.add(key+"endpoint", fmt.Sprintf("%q with dp_start_rank %d and dp_size %d", settings.Endpoint, settings.DPStartRank, settings.DPSize), err.Error())
		return
	}
	own := fmt.Sprintf("%sendpoint %q", key, settings.Endpoint)
	for _, address := range addresses {
		if other, clash := taken[address.identity()]; clash {
			p.add(key+"endpoint", fmt.Sprintf("%q, which includes %s", settings.Endpoint, address),
				"an address that "+other+" does not include too")
			return
		}
		taken[address.identity()] = own
	}
}

func (p *problemList) attributes(key string, attributes map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		switch value := attributes[name].(type) {
		case string, bool, int, int64, float64:
		default:
			p.add(key+"resource_attributes::"+name, fmt.Sprintf("%v", value), "a string, number or boolean")
		}
	}
}
