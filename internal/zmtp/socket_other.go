// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package zmtp

import "errors"

func setLowWater(uintptr, int) error { return errors.ErrUnsupported }

func readNow(uintptr, []byte) int { return 0 }
