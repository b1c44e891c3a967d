// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
)

// printable makes text from a file fit for a terminal: what is no graphic
// character or a blank is escaped.
func printable(text string) string {
	graphic := func(r rune) bool {
		return r == ' ' || unicode.IsGraphic(r) && r != unicode.ReplacementChar && !unicode.IsSpace(r)
	}
	if strings.IndexFunc(text, func(r rune) bool { return !graphic(r) }) < 0 {
		return text
	}
	var safe strings.Builder
	for _, r := range text {
		if graphic(r) {
			safe.WriteRune(r)
		} else {
			quoted := strconv.QuoteRuneToASCII(r)
			safe.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return safe.String()
}

// table prints rows in columns; a column of numbers stands to the right.
type table struct {
	out  io.Writer
	rows [][]string
	// header: the first row names the columns.
	header bool
}

func newTable(out io.Writer, columns ...string) *table {
	t := &table{out: out, header: len(columns) > 0}
	if t.header {
		t.row(columns...)
	}
	return t
}

func (t *table) row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = printable(cell)
	}
	t.rows = append(t.rows, row)
}

func (t *table) flush() {
	var widths []int
	var numbers []bool
	for y, row := range t.rows {
		for x, cell := range row {
			if x == len(widths) {
				widths, numbers = append(widths, 0), append(numbers, true)
			}
			widths[x] = max(widths[x], utf8.RuneCountInString(cell))
			numbers[x] = numbers[x] && (t.header && y == 0 || isNumber(cell))
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		for x, cell := range row {
			blanks := strings.Repeat(" ", widths[x]-utf8.RuneCountInString(cell))
			if numbers[x] {
				cell = blanks + cell
			} else {
				cell += blanks
			}
			line.WriteString(cell + "  ")
		}
		_, _ = fmt.Fprintln(t.out, strings.TrimRight(line.String(), " "))
	}
}

// isNumber reports whether a cell is a number, or stands for none.
func isNumber(cell string) bool {
	_, err := strconv.ParseFloat(cell, 64)
	return err == nil || cell == none || cell == ""
}

// printJSON prints a value as JSON, indented.
func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// none stands for what a file does not say.
const none = "-"

func whole(value *int64) string {
	if value == nil {
		return none
	}
	return strconv.FormatInt(*value, 10)
}

func given(text string) string {
	if text == "" {
		return none
	}
	return text
}

// milliseconds of a duration in seconds.
func milliseconds(seconds *float64) string {
	if seconds == nil {
		return none
	}
	return strconv.FormatFloat(*seconds*1000, 'f', 3, 64)
}

func rankName(rank int) string {
	if rank == benchmark.NoRank {
		return none
	}
	return strconv.Itoa(rank)
}
