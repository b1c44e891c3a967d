// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds each wait for something that takes a second or two on an idle
// machine.
const patience = 60 * time.Second

// Spec is what a pod says beyond its image.
type Spec struct {
	// Arguments stand in for the image's command when not nil.
	Arguments []string
	// Environment adds NAME=value to the image's.
	Environment []string
	// Files are mounted: path and contents.
	Files map[string]string
	// Volumes are folders that the user may write into.
	Volumes []string
	// ReadOnly makes everything but the volumes read-only.
	ReadOnly bool
}

// Container is a running Collector.
type Container struct {
	// Volumes are the folders behind the volumes of the spec, by their path inside.
	Volumes map[string]string
	cmd     *exec.Cmd
	log     *log
	// exited is closed when the process has ended with err.
	exited chan struct{}
	err    error
}

// Run runs the entry point to its end and returns what it said.
func (i *Image) Run(tb testing.TB, spec Spec) (output string, err error) {
	tb.Helper()
	c := i.Start(tb, spec)
	select {
	case <-c.exited:
	case <-time.After(patience):
		tb.Fatalf("%v does not end:\n%s", c.cmd.Args, c.Log())
	}
	return c.Log(), c.err
}

// enter prepares the mounts in a name space that ends with the process, and
// becomes the entry point: no mount is left behind, and the process's id is the
// Collector's. Its arguments: root, user:group, "rw" or "ro", the number of
// volumes, for each its folder and its path, then the command.
const enter = `set -e
root=$1 user=$2 mode=$3 volumes=$4; shift 4
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
while [ "$volumes" -gt 0 ]; do mount --bind "$1" "$root$2"; shift 2; volumes=$((volumes-1)); done
mount -o "remount,$mode,bind" "$root"
exec chroot --userspec="$user" --groups= "$root" "$@"`

// Start runs the entry point in a file system of its own, a copy of the image's,
// and ends it with the test.
func (i *Image) Start(tb testing.TB, spec Spec) *Container {
	tb.Helper()
	c := &Container{Volumes: map[string]string{}, log: &log{}, exited: make(chan struct{})}
	mode := "rw"
	if spec.ReadOnly {
		mode = "ro"
	}
	root := i.clone(tb, spec)
	words := []string{
		"--mount", "sh", "-c", enter, "enter",
		root, fmt.Sprintf("%d:%d", i.UID, i.GID), mode, strconv.Itoa(len(spec.Volumes)),
	}
	for _, path := range spec.Volumes {
		folder := tb.TempDir()
		require.NoError(tb, os.Chown(folder, i.UID, i.GID))
		require.NoError(tb, os.MkdirAll(filepath.Join(root, path), 0o755))
		c.Volumes[path] = folder
		words = append(words, folder, path)
	}
	words = append(words, i.Entrypoint...)
	if spec.Arguments == nil {
		words = append(words, i.Command...)
	}
	c.cmd = exec.Command("unshare", append(words, spec.Arguments...)...)
	c.cmd.Env = append(append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, i.Environment...), spec.Environment...)
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	require.NoError(tb, c.cmd.Start())
	go func() {
		c.err = c.cmd.Wait()
		close(c.exited)
	}()
	tb.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.exited
		if tb.Failed() {
			tb.Logf("log of the Collector:\n%s", c.Log())
		}
	})
	return c
}

// clone links the image's files into a new folder and adds those of the spec.
func (i *Image) clone(tb testing.TB, spec Spec) string {
	tb.Helper()
	root := tb.TempDir()
	require.NoError(tb, filepath.WalkDir(i.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == i.Root {
			return err
		}
		target := filepath.Join(root, strings.TrimPrefix(path, i.Root))
		if !d.IsDir() {
			return os.Link(path, target)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		owner := info.Sys().(*syscall.Stat_t)
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
		return os.Chown(target, int(owner.Uid), int(owner.Gid))
	}))
	require.NoError(tb, os.Mkdir(filepath.Join(root, "proc"), 0o555))
	for path, contents := range spec.Files {
		target := filepath.Join(root, path)
		require.NoError(tb, os.MkdirAll(filepath.Dir(target), 0o755))
		_ = os.Remove(target) // a link to the image's file
		require.NoError(tb, os.WriteFile(target, []byte(contents), 0o644))
	}
	return root
}

// Log is what the Collector said so far.
func (c *Container) Log() string { return c.log.String() }

// MemoryBytes is what the process has in memory.
func (c *Container) MemoryBytes(tb testing.TB) int64 {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.cmd.Process.Pid))
	require.NoError(tb, err)
	var size, resident int64
	_, err = fmt.Sscan(string(text), &size, &resident)
	require.NoError(tb, err)
	return resident * int64(os.Getpagesize())
}

// Get waits until url answers 200 and returns the page.
func (c *Container) Get(tb testing.TB, url string) string {
	tb.Helper()
	var last string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		select {
		case <-c.exited:
			tb.Fatalf("the Collector ended: %v", c.err)
		default:
		}
		response, err := http.Get(url)
		if err != nil {
			last = err.Error()
			continue
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		require.NoError(tb, err)
		if response.StatusCode == http.StatusOK {
			return string(body)
		}
		last = response.Status + " " + string(body)
	}
	tb.Fatalf("%s does not answer 200: %s", url, last)
	return ""
}

// Wait waits until url answers 200 with a page that has text.
func (c *Container) Wait(tb testing.TB, url, text string) string {
	tb.Helper()
	var page string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if page = c.Get(tb, url); strings.Contains(page, text) {
			return page
		}
	}
	tb.Fatalf("%s does not show %q but:\n%s", url, text, page)
	return ""
}

// Stop ends the Collector as a kubelet does and waits for a clean end.
func (c *Container) Stop(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, c.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-c.exited:
		require.NoError(tb, c.err, "%s", c.Log())
	case <-time.After(patience):
		tb.Fatalf("the Collector does not end:\n%s", c.Log())
	}
}

var nextAddress atomic.Int32

// Address is a loopback address that no other test of this machine uses, as the
// address of a pod: a pod's ports are its own.
func Address() string {
	n := nextAddress.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", 64+os.Getpid()%128, os.Getpid()/128%256, 1+n)
}

// log collects output while it is read.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
