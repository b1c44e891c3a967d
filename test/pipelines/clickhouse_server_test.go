// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// clickHouse stands in for a ClickHouse server, which is not to be had where
// tests run. It speaks the HTTP interface with the codec of ClickHouse's own
// client, remembers the tables that are created, and keeps the rows.
type clickHouse struct {
	address string

	mu     sync.Mutex
	tables map[string][]tableColumn
	rows   map[string][]map[string]any
	errors []string
}

type tableColumn struct{ name, kind, defaultKind string }

func startClickHouse(t *testing.T) *clickHouse {
	t.Helper()
	c := &clickHouse{tables: map[string][]tableColumn{}, rows: map[string][]map[string]any{}}
	server := httptest.NewServer(c)
	c.address = strings.TrimPrefix(server.URL, "http://")
	t.Cleanup(server.Close)
	return c
}

func (c *clickHouse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = c.run(w, r, body)
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.errors = append(c.errors, err.Error())
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

var (
	createTable = regexp.MustCompile(`(?s)^CREATE TABLE IF NOT EXISTS "?otel"?\."?(\w+)"?\s*\((.*)\)\s*ENGINE`)
	describe    = regexp.MustCompile(`^DESC(?:RIBE)? TABLE "?otel"?\."?(\w+)"?$`)
	insert      = regexp.MustCompile(`(?s)^INSERT INTO "?otel"?\."?(\w+)"?`)
)

func (c *clickHouse) run(w http.ResponseWriter, r *http.Request, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	query := string(body)
	if q := r.URL.Query().Get("query"); q != "" {
		query = q
	}
	query = strings.TrimSpace(strings.ReplaceAll(query, "`", ""))
	revision, err := strconv.ParseUint(r.URL.Query().Get("client_protocol_version"), 10, 64)
	if err != nil {
		return err
	}
	switch {
	case query == "SELECT displayName(), version(), revision(), timezone()":
		return answer(w, revision, []tableColumn{{"displayName()", "String", ""}, {"version()", "String", ""}, {"revision()", "UInt32", ""}, {"timezone()", "String", ""}},
			[]any{"test", "25.3.1", uint32(revision), "UTC"})
	case strings.HasPrefix(query, "CREATE DATABASE IF NOT EXISTS"):
		return nil
	case createTable.MatchString(query):
		match := createTable.FindStringSubmatch(query)
		c.tables[match[1]], err = columnsOf(match[2])
		return err
	case describe.MatchString(query):
		return c.describe(w, revision, describe.FindStringSubmatch(query)[1])
	case insert.MatchString(query):
		return c.insert(insert.FindStringSubmatch(query)[1], body)
	default:
		return fmt.Errorf("a query that this server does not know: %s", query)
	}
}

var beginsNested = regexp.MustCompile(`^(\w+) Nested ?\($`)

// columnsOf reads the columns of a CREATE TABLE.
func columnsOf(definitions string) (columns []tableColumn, err error) {
	const kind = `((?:Map|LowCardinality|Array|DateTime64)\((?:[^()]|\([^()]*\))*\)|\w+)`
	one := regexp.MustCompile(`^([\w.]+) ` + kind + `( MATERIALIZED)?(?:[ ,]|$)`)
	nested := ""
	for line := range strings.Lines(definitions) {
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case line == "", strings.HasPrefix(line, "INDEX "):
		case beginsNested.MatchString(line):
			nested = beginsNested.FindStringSubmatch(line)[1] + "."
		case strings.HasPrefix(line, ")"):
			nested = ""
		default:
			match := one.FindStringSubmatch(line)
			if match == nil {
				return nil, fmt.Errorf("a column that this server does not know: %s", line)
			}
			c := tableColumn{nested + match[1], match[2], strings.TrimSpace(match[3])}
			if nested != "" {
				c.kind = "Array(" + c.kind + ")"
			}
			columns = append(columns, c)
		}
	}
	return columns, nil
}

func (c *clickHouse) describe(w io.Writer, revision uint64, table string) error {
	if c.tables[table] == nil {
		return fmt.Errorf("there is no table %s", table)
	}
	var header []tableColumn
	for _, name := range []string{"name", "type", "default_type", "default_expression", "comment", "codec_expression", "ttl_expression"} {
		header = append(header, tableColumn{name, "String", ""})
	}
	var rows [][]any
	for _, column := range c.tables[table] {
		rows = append(rows, []any{column.name, column.kind, column.defaultKind, "", "", "", ""})
	}
	return answer(w, revision, header, rows...)
}

// answer sends a block of rows.
func answer(w io.Writer, revision uint64, header []tableColumn, rows ...[]any) error {
	block := proto.NewBlock()
	for _, c := range header {
		if err := block.AddColumn(c.name, column.Type(c.kind)); err != nil {
			return err
		}
	}
	for _, row := range rows {
		if err := block.Append(row...); err != nil {
			return err
		}
	}
	var buffer chproto.Buffer
	if err := block.Encode(&buffer, revision); err != nil {
		return err
	}
	_, err := w.Write(buffer.Buf)
	return err
}

// insert keeps the rows of a block. Clients send blocks in revision 0.
func (c *clickHouse) insert(table string, body []byte) error {
	block := proto.NewBlock()
	if err := block.Decode(chproto.NewReader(bufio.NewReader(strings.NewReader(string(body)))), 0); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, column := range c.tables[table] {
		known[column.name] = true
	}
	for i := range block.Rows() {
		row := map[string]any{}
		for _, column := range block.Columns {
			if !known[column.Name()] {
				return fmt.Errorf("table %s has no column %s", table, column.Name())
			}
			row[column.Name()] = column.Row(i, false)
		}
		c.rows[table] = append(c.rows[table], row)
	}
	return nil
}

// table are the rows of a table so far.
func (c *clickHouse) table(name string) []map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]map[string]any(nil), c.rows[name]...)
}
