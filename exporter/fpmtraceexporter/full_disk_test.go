// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fpmtraceexporter

import (
	"encoding/base64"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"golang.org/x/sys/unix"
)

// mountSmallDisk mounts a file system of 256 KiB, or skips.
func mountSmallDisk(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		if os.Getenv("CI") == "true" {
			require.NoError(t, err)
		}
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
}

// noise is text that does not compress.
func noise(random *rand.ChaCha8, size int) string {
	raw := make([]byte, size*3/4)
	_, _ = random.Read(raw)
	return base64.StdEncoding.EncodeToString(raw)
}

// TestFullDisk fills a real file system: the exporter lives and keeps the
// newest rows, and when there is space again rows flow again. What is missing
// in the files is what was counted.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	mountSmallDisk(t, dir)
	ballast := filepath.Join(dir, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 128<<10), 0o600))
	r := rigIn(t, dir, func(cfg *Config) {
		cfg.FlushInterval, cfg.QueueSize, cfg.RollBytes, cfg.MaxSegments = 5*time.Millisecond, 40, 60_000, 100
	}).start(nil)
	random := rand.NewChaCha8([32]byte{1})
	next := int64(0)
	send := func() {
		logs := logsOf("4192", pass{counter: next})
		logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().Map().PutStr("noise", noise(random, 2000))
		require.NoError(t, r.logs.ConsumeLogs(t.Context(), logs))
		r.took(1)
		next++
		time.Sleep(time.Millisecond)
	}
	for r.sum("dropped", reasonQueueFull) < 100 {
		send()
		require.Less(t, next, int64(20_000), "the disk does not get full")
	}
	assert.Positive(t, r.sum("write_errors", ""))
	assert.Contains(t, r.host.reported(), componentstatus.StatusRecoverableError)
	full := r.sum("rows", outcomeWritten)

	require.NoError(t, os.Remove(ballast))
	require.Eventually(t, func() bool { send(); return r.sum("rows", outcomeWritten) >= full+20 }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { // reported after the rows are counted
		reported := r.host.reported()
		return reported[len(reported)-1] == componentstatus.StatusOK
	}, 10*time.Second, time.Millisecond)
	r.stop()

	require.NoError(t, os.RemoveAll(ballast))
	rows := counters(r.rows("fpm.4192."))
	assert.True(t, slices.IsSorted(rows))
	assert.Len(t, slices.Compact(slices.Clone(rows)), len(rows), "no row twice")
	assert.Equal(t, r.sum("rows", outcomeWritten), int64(len(rows)))
	assert.Equal(t, next-int64(len(rows)), r.sum("dropped", ""), "rows lost are rows counted")
}
