// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package zmtp

import "syscall"

// setLowWater says how many bytes have to lie in a socket before it counts as readable.
func setLowWater(fd uintptr, bytes int) error {
	return syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, bytes)
}

// readNow reads what lies in a socket that does not block; 0 or less when that is nothing, the end, or an error, which
// the next ordinary read meets again.
func readNow(fd uintptr, p []byte) int {
	n, _ := syscall.Read(int(fd), p)
	return n
}
