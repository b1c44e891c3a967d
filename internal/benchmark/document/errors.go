// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package document

import "fmt"

// Error says why a text is no document.
type Error struct {
	// NotFinite: the text has NaN, Infinity or a number beyond a double, which
	// Python writes and reads and JSON does not know.
	NotFinite bool
	// Line and Column, both from 1, of the byte that is wrong.
	Line, Column int
	// Got is what stands there, Want what is allowed.
	Got, Want string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: got %s, want %s", e.Line, e.Column, e.Got, e.Want)
}
