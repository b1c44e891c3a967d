// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"fmt"
	"strconv"
	"strings"
)

// Series says which files belong together: a segment's path is series, index
// and suffix, and the segments of one writer share their series. ok is false for
// a path that is not written as a writer writes it; such a file stands alone.
func Series(path string) (series string, index uint64, ok bool) {
	rest, ok := strings.CutSuffix(path, suffix)
	if !ok {
		return "", 0, false
	}
	dot := strings.LastIndexByte(rest, '.')
	if dot < 1 {
		return "", 0, false
	}
	digits := rest[dot+1:]
	index, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || fmt.Sprintf("%06d", index) != digits {
		return "", 0, false
	}
	return rest[:dot], index, true
}
