// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-fpm/otelcol-fpm/internal/histogramconfig"
)

// configs are the instances of testdata/config.yaml.
func configs(t *testing.T) *confmap.Conf {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	return conf
}

func load(t *testing.T, all *confmap.Conf, name string) (*Config, error) {
	t.Helper()
	conf, err := all.Sub(name)
	require.NoError(t, err)
	config := createDefaultConfig().(*Config)
	return config, conf.Unmarshal(config)
}

func TestConfig(t *testing.T) {
	short := func(endpoint string, change ...func(*Config)) *Config {
		return testConfig(append([]func(*Config){func(c *Config) { c.Endpoint = endpoint }}, change...)...)
	}
	all := configs(t)
	for name, want := range map[string]*Config{
		"fpm":     short("127.0.0.1:20380"),
		"fpm/tcp": short("tcp://gpu-7:20380"),
		"fpm/ipc": short("ipc:///tmp/sglang-fpm"),
		"fpm/both_forms": short("127.0.0.1:20380", func(c *Config) {
			c.DPSize = 2
			c.Endpoints = []EndpointConfig{{Endpoint: "127.0.0.1:20390", DPSize: 1}}
		}),
		"fpm/full": {
			Endpoint: "127.0.0.1:20380", DPSize: 4, DPStartRank: 4,
			ResourceAttributes: map[string]any{"k8s.node.name": "gpu-7"},
			Endpoints: []EndpointConfig{
				{
					Endpoint: "tcp://10.0.0.7:20380", DPSize: 8, DPStartRank: 8, Namespace: "prod", Component: "prefill",
					ResourceAttributes: map[string]any{"k8s.pod.name": "vllm-0", "gpu.count": 8, "spot": true, "weight": 0.5},
				},
				{Endpoint: "ipc:///tmp/sglang-fpm", DPSize: 2},
				{Endpoint: "[fd00::7]:20380", DPSize: 1},
			},
			Namespace: "test", Component: "decode",
			Batch:         BatchConfig{Timeout: 100 * time.Millisecond, MaxMessages: 256},
			GaugeInterval: time.Second,
			StaleAfter:    10 * time.Second, RankTTL: 20 * time.Minute, MaxRanks: 100,
			QueueSize: 1000, QueueBytes: 1_000_000, MaxMessageBytes: 100_000,
			Dial:      DialConfig{Timeout: time.Second, InitialBackoff: 200 * time.Millisecond, MaxBackoff: 2 * time.Second},
			Histogram: histogramconfig.Config{Exponential: configoptional.Some(histogramconfig.ExponentialConfig{MaxSize: 20})},
		},
		"fpm/bounds": short("127.0.0.1:20380", func(c *Config) { c.Histogram.Bounds = []float64{0.01, 0.1, 1} }),
		"fpm/exponential_default": short("127.0.0.1:20380", func(c *Config) {
			c.Histogram.Exponential = configoptional.Some(histogramconfig.ExponentialConfig{MaxSize: 160})
		}),
		"fpm/ipc_fits": short("ipc:///tmp/aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggghhhhhhhhhhiiiiiiiiiijjjjjjjjjj"),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := load(t, all, name)
			require.NoError(t, err)
			require.NoError(t, confmap.Validate(got))
			assert.Equal(t, want, got)
		})
	}
}

// Keys are strict, at every level, and so are types.
func TestConfigKeys(t *testing.T) {
	all := configs(t)
	for name, want := range map[string]string{
		"fpm/typo_endpoint":       "invalid keys: endpont",
		"fpm/typo_in_endpoints":   "invalid keys: dpsize",
		"fpm/typo_in_batch":       "'batch' has invalid keys: max_message",
		"fpm/endpoint_is_a_list":  "'endpoint' expected type 'string'",
		"fpm/endpoints_is_a_text": "'endpoints' source data must be an array or slice",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, all, name)
			require.ErrorContains(t, err, want)
		})
	}
}

// Each problem has a line: the key path, the value, what is allowed. All of
// them are reported at once.
func TestConfigProblems(t *testing.T) {
	const (
		anyTCP  = "want tcp://host:port, host:port or ipc://path"
		anyPort = "want a port in 1 to 65535"
		none    = `endpoint: got "", want an endpoint here or under endpoints, such as 127.0.0.1:20380 or ipc:///tmp/sglang-fpm`
		path    = "ipc:///tmp/aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggghhhhhhhhhhiiiiiiiiiijjjjjjjjjj"
	)
	all := configs(t)
	for name, want := range map[string][]string{
		"fpm/nothing":         {none},
		"fpm/empty_endpoints": {none},
		"fpm/scheme":          {`endpoint: got "http://127.0.0.1:20380", ` + anyTCP},
		"fpm/no_port":         {`endpoint: got "127.0.0.1", ` + anyTCP},
		"fpm/no_host":         {`endpoint: got ":20380", want a host before the port`},
		"fpm/bind_address":    {`endpoint: got "tcp://*:20380", want a host to connect to (* is what an engine binds)`},
		"fpm/port_zero":       {`endpoint: got "127.0.0.1:0", ` + anyPort},
		"fpm/port_text":       {`endpoint: got "127.0.0.1:http", ` + anyPort},
		"fpm/port_too_high":   {`endpoint: got "127.0.0.1:65536", ` + anyPort},
		"fpm/port_too_high_by_dp_size": {
			`endpoint: got "127.0.0.1:65530" with dp_start_rank 0 and dp_size 7, want ports up to 65535 (the last is 65536)`,
		},
		"fpm/port_too_high_by_start_rank": {
			`endpoint: got "127.0.0.1:65530" with dp_start_rank 9000000000000000000 and dp_size 1, want dp_start_rank and dp_size of at most 65535`,
		},
		"fpm/ipc_without_path": {`endpoint: got "ipc://", want a path after ipc://`},
		"fpm/ipc_too_long": {
			`endpoint: got "` + path + `k" with dp_start_rank 0 and dp_size 1, want an ipc path, with the rank behind it, of at most 107 bytes (108)`,
		},
		"fpm/ipc_too_long_by_dp_size": {
			`endpoint: got "` + path + `" with dp_start_rank 0 and dp_size 11, want an ipc path, with the rank behind it, of at most 107 bytes (108)`,
		},
		"fpm/same_address": {
			`endpoints::1::endpoint: got "tcp://127.0.0.1:20381", which includes tcp://127.0.0.1:20381, want an address that endpoint "localhost:20380" does not include too`,
			`endpoints::2::endpoint: got "tcp-host:20380", which includes tcp://tcp-host:20382, want an address that endpoints::0::endpoint "TCP-HOST:20382" does not include too`,
			`endpoints::4::endpoint: got "ipc:///tmp/fpm", which includes ipc:///tmp/fpm.0, want an address that endpoints::3::endpoint "ipc:///tmp/fpm" does not include too`,
		},
		"fpm/dp_without_endpoint": {
			`dp_size: got dp_size 2 and dp_start_rank 1 without endpoint, want an endpoint beside them; they do not apply to endpoints`,
		},
		"fpm/histogram_both": {`histogram: got bounds and exponential, want exactly one of the two`},
		"fpm/histogram_order": {
			`histogram::bounds::2: got 2, want finite bounds in seconds, strictly increasing`,
			`histogram::bounds::3: got +Inf, want finite bounds in seconds, strictly increasing`,
		},
		"fpm/histogram_empty": {`histogram::bounds: got [], want at least one bound`},
		"fpm/histogram_size":  {`histogram::exponential::max_size: got 1, want 2 to 16384`},
		"fpm/attributes": {
			`resource_attributes::list: got [1 2], want a string, number or boolean`,
			`resource_attributes::null_value: got <nil>, want a string, number or boolean`,
			`endpoints::0::resource_attributes::map: got map[a:1], want a string, number or boolean`,
		},
		"fpm/zeros": {
			`namespace: got "", want a name`,
			`component: got "", want a name`,
			`dp_size: got 0, want 1 or more`,
			`endpoints::0::dp_size: got 0, want 1 or more`,
			`endpoints::0::dp_start_rank: got -1, want 0 or more`,
			`batch::timeout: got 0s, want 1ms or more, with its unit`,
			`batch::max_messages: got 0, want 1 or more`,
			`stale_after: got 0s, want 1ms or more, with its unit`,
			`rank_ttl: got 0s, want 1ms or more, with its unit`,
			`max_ranks: got 0, want 1 or more`,
			`queue_size: got 0, want 1 or more`,
			`queue_bytes: got 0, want 1 or more`,
			`max_message_bytes: got 0, want 1 or more`,
			`dial::timeout: got 0s, want 1ms or more, with its unit`,
			`dial::initial_backoff: got 0s, want 1ms or more, with its unit`,
			`dial::max_backoff: got 0s, want 1ms or more, with its unit`,
		},
		"fpm/negative": {
			`dp_size: got -1, want 1 or more`,
			`dp_start_rank: got -2, want 0 or more`,
			`batch::timeout: got -1s, want 1ms or more, with its unit`,
			`batch::max_messages: got -1, want 1 or more`,
			`gauge_interval: got -1s, want 0s, or 1ms or more, with its unit`,
			`stale_after: got -1s, want 1ms or more, with its unit`,
			`rank_ttl: got -1s, want 1ms or more, with its unit`,
			`max_ranks: got -1, want 1 or more`,
			`queue_size: got -1, want 1 or more`,
			`queue_bytes: got -1, want 1 or more`,
			`max_message_bytes: got -1, want 1 or more`,
			`dial::timeout: got -1s, want 1ms or more, with its unit`,
			`dial::initial_backoff: got -1s, want 1ms or more, with its unit`,
			`dial::max_backoff: got -1s, want 1ms or more, with its unit`,
		},
		"fpm/duration_without_unit": {`stale_after: got 5ns, want 1ms or more, with its unit`},
		"fpm/together": {
			`rank_ttl: got 5s, want at least stale_after (10s)`,
			`max_message_bytes: got 1001, want at most queue_bytes (1000)`,
			`dial::max_backoff: got 1s, want at least initial_backoff (2s)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := load(t, all, name)
			require.NoError(t, err)
			err = confmap.Validate(config)
			require.Error(t, err)
			assert.Equal(t, want, strings.Split(err.Error(), "\n"))
		})
	}
}

func TestEveryConfigOfTestdataIsTested(t *testing.T) {
	for name := range configs(t).ToStringMap() {
		config, err := load(t, configs(t), name)
		if err == nil {
			err = config.Validate()
		}
		good := slices.Contains([]string{
			"fpm", "fpm/tcp", "fpm/ipc", "fpm/both_forms", "fpm/full", "fpm/bounds", "fpm/exponential_default", "fpm/ipc_fits",
		}, name)
		assert.Equal(t, good, err == nil, name)
	}
}

func TestDefaultConfig(t *testing.T) {
	require.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	config := testConfig()
	require.NoError(t, config.Validate())
	assert.Equal(t, &Config{
		Endpoint: "127.0.0.1:1", DPSize: 1, Namespace: "default", Component: "backend",
		Batch:      BatchConfig{Timeout: 200 * time.Millisecond, MaxMessages: 1024},
		StaleAfter: 5 * time.Second, RankTTL: 10 * time.Minute, MaxRanks: 4096,
		QueueSize: 65536, QueueBytes: 67108864, MaxMessageBytes: 1048576, AcceptUnversioned: true,
		Dial:      DialConfig{Timeout: 3 * time.Second, InitialBackoff: 100 * time.Millisecond, MaxBackoff: 5 * time.Second},
		Histogram: histogramconfig.Config{Exponential: configoptional.Default(histogramconfig.ExponentialConfig{MaxSize: 160})},
	}, config)
}

func TestBlockOfEndpoints(t *testing.T) {
	for name, test := range map[string]struct {
		config EndpointConfig
		want   []string
	}{
		"one":            {EndpointConfig{Endpoint: "127.0.0.1:20380", DPSize: 1}, []string{"tcp://127.0.0.1:20380"}},
		"ranks":          {EndpointConfig{Endpoint: "tcp://gpu:20380", DPSize: 3}, []string{"tcp://gpu:20380", "tcp://gpu:20381", "tcp://gpu:20382"}},
		"a later node":   {EndpointConfig{Endpoint: "tcp://gpu:20380", DPSize: 2, DPStartRank: 8}, []string{"tcp://gpu:20388", "tcp://gpu:20389"}},
		"the last port":  {EndpointConfig{Endpoint: "tcp://gpu:65535", DPSize: 1}, []string{"tcp://gpu:65535"}},
		"IPv6":           {EndpointConfig{Endpoint: "[::1]:20380", DPSize: 2}, []string{"tcp://[::1]:20380", "tcp://[::1]:20381"}},
		"ipc":            {EndpointConfig{Endpoint: "ipc:///tmp/fpm", DPSize: 2}, []string{"ipc:///tmp/fpm.0", "ipc:///tmp/fpm.1"}},
		"ipc, for one":   {EndpointConfig{Endpoint: "ipc:///tmp/fpm", DPSize: 1}, []string{"ipc:///tmp/fpm.0"}},
		"ipc, from rank": {EndpointConfig{Endpoint: "ipc:///tmp/fpm", DPSize: 1, DPStartRank: 3}, []string{"ipc:///tmp/fpm.3"}},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := parseEndpoint(test.config.Endpoint)
			require.NoError(t, err)
			addresses, err := base.expand(test.config.DPStartRank, test.config.DPSize)
			require.NoError(t, err)
			var got []string
			for _, a := range addresses {
				got = append(got, a.String())
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestEphemeralPorts(t *testing.T) {
	const linux = "32768\t60999\n"
	for name, test := range map[string]struct {
		config EndpointConfig
		ports  string // "" is no warning
	}{
		"below":                        {EndpointConfig{Endpoint: "127.0.0.1:20380", DPSize: 8}, ""},
		"within":                       {EndpointConfig{Endpoint: "127.0.0.1:40000", DPSize: 1}, "40000-40000"},
		"reaches in":                   {EndpointConfig{Endpoint: "127.0.0.1:32767", DPSize: 2}, "32767-32769"},
		"reaches in by the ROUTER":     {EndpointConfig{Endpoint: "localhost:32766", DPSize: 2}, "32766-32768"},
		"one rank has no ROUTER":       {EndpointConfig{Endpoint: "127.0.0.1:32767", DPSize: 1}, ""},
		"reaches in by the start rank": {EndpointConfig{Endpoint: "[::1]:32760", DPSize: 1, DPStartRank: 8}, "32768-32768"},
		"above":                        {EndpointConfig{Endpoint: "127.0.0.1:61000", DPSize: 2}, ""},
		"another host":                 {EndpointConfig{Endpoint: "10.1.2.3:40000", DPSize: 1}, ""},
		"ipc":                          {EndpointConfig{Endpoint: "ipc:///tmp/fpm", DPSize: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			warning := ephemeralWarning(test.config, linux)
			if test.ports == "" {
				assert.Empty(t, warning)
				return
			}
			assert.Contains(t, warning, "ports "+test.ports+" ")
			assert.Contains(t, warning, "range 32768-60999")
			assert.Empty(t, ephemeralWarning(test.config, "not to be read"))
		})
	}
}

func TestEndpointOnSelfBenchmarkPort(t *testing.T) {
	config := testConfig(func(c *Config) {
		c.Endpoint, c.DPSize = "127.0.0.1:20380", 2
		c.Endpoints = []EndpointConfig{
			{Endpoint: "localhost:20382", DPSize: 1}, // the ROUTER of the first
			{Endpoint: "localhost:20383", DPSize: 1}, // alone, it has no ROUTER
			{Endpoint: "10.0.0.1:20382", DPSize: 1},  // another host
			{Endpoint: "ipc:///tmp/fpm", DPSize: 2},  // no ports
			{Endpoint: "localhost:20384", DPSize: 1}, // fine
			{Endpoint: "10.0.0.1:20370", DPSize: 2},  // its ROUTER is 20372
			{Endpoint: "10.0.0.1:20371", DPSize: 1, DPStartRank: 1},
		}
	})
	require.NoError(t, config.Validate())
	assert.Equal(t, [][2]string{
		{"localhost:20382", "127.0.0.1:20380"},
		{"10.0.0.1:20371", "10.0.0.1:20370"},
	}, synchronizerPorts(config.engines()))
}
