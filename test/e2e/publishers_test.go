// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// Every kind of publisher, from its socket to page and trace.
func TestPublishers(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		ipc  bool
		// labels are those that each gauge has.
		labels []string
	}{
		"dynamo vllm": {args: []string{"--worker-id", "4192"}, labels: []string{"instance", "4192"}},
		"sglang":      {ipc: true},
		"native vllm": {
			args:   []string{"--variant", "native", "--worker-id", "instance-1"},
			labels: []string{"fpm_timing_scope", "model_step_cuda", "instance", "instance-1"},
		},
		"unversioned": {args: []string{"--variant", "unversioned"}},
		"additive":    {args: []string{"--variant", "additive", "--worker-id", "4192"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ranks, count = 2, 300
			endpoint := tcp(ports.Block(t, ranks))
			if row.ipc {
				endpoint = "ipc://" + filepath.Join(t.TempDir(), "sglang-fpm")
			}
			engine := publish(t, endpoint, append(row.args, "--ranks", "2", "--count", "300", "--rate", "300", "--heartbeat-every", "7")...)
			c := quickstart(t, endpoint, ranks)
			engine.waitFor(t, "sent")
			c.delivered(t, ranks*count)
			page := c.latest(t, ranks, count-1)
			want, _ := engine.sent(t)
			for rank := range ranks {
				assertPage(t, page, rank, totalsOf(t, want[rank]))
			}
			require.Len(t, page["fpm_queued_decode_requests"], ranks)
			for _, s := range page["fpm_queued_decode_requests"] {
				assert.True(t, s.has(row.labels), "%v", s.labels)
			}
			assertLedger(t, c.quiet(t))
			engine.end(t)
			c.stop(t)
			assertRowsAreSent(t, c.rows(t), want)
		})
	}
}
