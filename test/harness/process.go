// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a running program.
type Process struct {
	Name  string
	cmd   *exec.Cmd
	log   *log
	stdin io.Closer
	// ended is closed after the end of the process, err then says how it was.
	ended chan struct{}
	err   error
}

// Start runs a program that is no part of the project.
func Start(tb testing.TB, name, program string, args ...string) *Process {
	tb.Helper()
	return start(tb, name, "", nil, program, args...)
}

// start runs a command. dir and env may be empty; env is added to that of the
// test.
func start(tb testing.TB, name, dir string, env []string, command string, args ...string) *Process {
	tb.Helper()
	p := &Process{Name: name, cmd: exec.Command(command, args...), log: &log{}, ended: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		tb.Fatalf("cannot start %s: %v", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("output of %s:\n%s", name, p.log.ends())
		}
	})
	return p
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is what the process has printed so far.
func (p *Process) Log() string { return p.log.String() }

// Ended says whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// WaitForLine waits for a line of the output.
func (p *Process) WaitForLine(tb testing.TB, line string) {
	tb.Helper()
	Wait(tb, p.Name+" does not say "+line, func() bool {
		if p.Ended() && !strings.Contains("\n"+p.Log(), "\n"+line+"\n") {
			tb.Fatalf("%s ended (%v) before it said %s", p.Name, p.err, line)
		}
		return strings.Contains("\n"+p.Log(), "\n"+line+"\n")
	})
}

// Kill ends the process as a crash does. It may have ended already.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Stop ends the process as a service manager does, and waits for a clean end.
func (p *Process) Stop(tb testing.TB) {
	tb.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		tb.Fatalf("cannot stop %s: %v", p.Name, err)
	}
	select {
	case <-p.ended:
	case <-time.After(Patience):
		tb.Fatalf("%s does not end", p.Name)
	}
	if p.err != nil {
		tb.Errorf("%s did not end well: %v", p.Name, p.err)
	}
	if strings.Contains(p.Log(), "panic") {
		tb.Errorf("%s panicked", p.Name)
	}
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

// resource is what each line of a Collector's log repeats.
var resource = regexp.MustCompile(`"resource": \{[^}]*\}(, )?`)

// ends is the part of the output that a failed test shows.
func (l *log) ends() string {
	const enough = 4 << 10
	s := resource.ReplaceAllString(l.String(), "")
	if len(s) > 2*enough {
		return s[:enough] + "\n…\n" + s[len(s)-enough:]
	}
	return s
}
