// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package zmtp

import (
	"errors"
	"syscall"
)

// readiness needs epoll: elsewhere a Poller serves no connection.
type readiness struct{}

type arrival struct {
	fd    int
	ended bool
}

func openReadiness() (*readiness, error) { return nil, errors.ErrUnsupported }

func (*readiness) close()                                       {}
func (*readiness) add(int) error                                { return errors.ErrUnsupported }
func (*readiness) remove(int)                                   {}
func (*readiness) wait() error                                  { return errors.ErrUnsupported }
func (*readiness) interrupt()                                   {}
func (*readiness) appendArrivals(to []arrival, _ int) []arrival { return to }

func duplicate(syscall.RawConn) (int, error) { return 0, errors.ErrUnsupported }

func readSocket(int, []byte) (int, error) { return 0, errors.ErrUnsupported }

func writeSocket(int, []byte) (int, error) { return 0, errors.ErrUnsupported }

func closeSocket(int) {}
