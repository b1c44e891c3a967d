// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"fmt"
	"os"

	"go.uber.org/zap"
)

// ephemeralRangeFile holds the range of ports that Linux gives to outgoing
// connections.
const ephemeralRangeFile = "/proc/sys/net/ipv4/ip_local_port_range"

// warnOfPorts names what is suspicious about the configured port blocks. It
// stays silent where the system does not tell its range.
func (r *fpmReceiver) warnOfPorts() {
	engines := r.config.engines()
	if text, err := os.ReadFile(ephemeralRangeFile); err == nil {
		for _, named := range engines {
			if warning := ephemeralWarning(named.config, string(text)); warning != "" {
				r.logger.Warn(warning, zap.String("endpoint", named.config.Endpoint))
			}
		}
	}
	for _, pair := range synchronizerPorts(engines) {
		r.logger.Warn("This endpoint is the self-benchmark port (base + dp_size) of another one, where no forward pass metrics come from; lower dp_size, or is it a rank of its own?",
			zap.String("endpoint", pair[0]), zap.String("other", pair[1]))
	}
}

// portBlock is the ports that an engine uses: its ranks and, with more than
// one rank, the port base + dp_size where rank 0 binds the self-benchmark's
// ROUTER.
func portBlock(c EndpointConfig) (base address, first, last int, ok bool) {
	base, err := parseEndpoint(c.Endpoint)
	if err != nil || base.network != "tcp" {
		return address{}, 0, 0, false
	}
	first = base.port + c.DPStartRank
	last = first + c.DPSize - 1
	if c.DPSize > 1 {
		last++
	}
	return base, first, last, true
}

// ephemeralWarning is the warning that a loopback engine's ports overlap the
// host's ephemeral range, or empty. rangeText is the content of
// ephemeralRangeFile.
func ephemeralWarning(c EndpointConfig, rangeText string) string {
	base, first, last, ok := portBlock(c)
	var low, high int
	if _, err := fmt.Sscan(rangeText, &low, &high); err != nil || !ok || !base.loopback() || last < low || first > high {
		return ""
	}
	return fmt.Sprintf("The ports %d-%d of this engine overlap this host's ephemeral port range %d-%d: an outgoing connection can take one of them before the engine binds it. Give the engine a base port below %d",
		first, last, low, high, low)
}

// synchronizerPorts finds endpoints set on another engine's self-benchmark
// port: pairs of the endpoint and the engine it belongs to.
func synchronizerPorts(engines []namedEngine) (pairs [][2]string) {
	for _, engine := range engines {
		base, _, last, ok := portBlock(engine.config)
		if !ok || engine.config.DPSize < 2 {
			continue
		}
		synchronizer := base
		synchronizer.port = last
		for _, other := range engines {
			if start, _, _, ok := portBlock(other.config); ok {
				start.port += other.config.DPStartRank
				if start.identity() == synchronizer.identity() {
					pairs = append(pairs, [2]string{other.config.Endpoint, engine.config.Endpoint})
				}
			}
		}
	}
	return pairs
}
