// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package zmtp

import (
	"errors"
	"syscall"
)

// setLowWater says how many bytes have to lie in a socket before it counts as readable.
func setLowWater(fd uintptr, bytes int) error {
	return syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, bytes)
}

// readNow reads what lies in a socket that does not block: below 0 when that is nothing, 0 when it is the end or an error,
// which the next ordinary read meets again.
func readNow(fd uintptr, p []byte) int {
	n, err := syscall.Read(int(fd), p)
	switch {
	case err == nil:
		return n
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return -1
	default:
		return 0
	}
}
