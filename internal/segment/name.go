// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	suffix = ".jsonl.gz"
	// maxFileName is what the usual file systems allow, in bytes.
	maxFileName = 255
	// maxIndex is the longest text of an index.
	maxIndex = "18446744073709551615"
	// maxBaseName leaves room for an id that is still readable.
	maxBaseName = 128
	// hashDigits is the length of the hash that tells alike names apart.
	hashDigits = 8
	// unknownID stands for an empty id.
	unknownID = "unknown"
)

// Base returns the base path that a configured path means: it loses one
// trailing .jsonl.gz or .jsonl, as in Dynamo.
func Base(path string) string {
	if base, ok := strings.CutSuffix(path, suffix); ok {
		return base
	}
	return strings.TrimSuffix(path, ".jsonl")
}

// CheckPath says whether a configured path can be a base.
func CheckPath(path string) error {
	base := Base(path)
	name := filepath.Base(base)
	switch {
	case strings.TrimSpace(path) == "":
		return errors.New("must not be empty")
	case strings.ContainsRune(path, 0):
		return errors.New("must not contain a NUL character")
	case base == "" || strings.HasSuffix(base, string(filepath.Separator)) || name == "." || name == "..":
		return errors.New("must end in the beginning of a file name, not in a directory")
	case len(name) > maxBaseName:
		return fmt.Errorf("has a last element of %d bytes, at most %d are allowed", len(name), maxBaseName)
	}
	return nil
}

// Sanitize makes any text a part of a file name: every character but ASCII
// letters, digits, '-' and '_' becomes one '_', and nothing becomes "unknown".
// Different texts may become alike.
func Sanitize(id string) string {
	if id == "" {
		return unknownID
	}
	return strings.Map(func(r rune) rune {
		if r < 0x80 && isNameByte(byte(r)) {
			return r
		}
		return '_'
	}, id)
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// nameFor is the id's part of file names under base: sanitized, and cut when
// the file name would be too long.
func nameFor(base, id string) string {
	name := Sanitize(id)
	if len(name) > roomFor(base) {
		name = hashed(base, id, hashDigits)
	}
	return name
}

// hashed is a name that differs from that of any other id, by digits of a
// hash.
func hashed(base, id string, digits int) string {
	sum := sha256.Sum256([]byte(id))
	tail := "-" + hex.EncodeToString(sum[:])[:digits]
	name := Sanitize(id)
	return name[:min(len(name), roomFor(base)-len(tail))] + tail
}

func roomFor(base string) int {
	return maxFileName - len(filepath.Base(base)) - len("..") - len(maxIndex) - len(suffix)
}

// fileName joins the parts. The suffix of the result is never stripped again,
// so that the id "jsonl" is an id like any other.
func fileName(base, name string, index uint64) string {
	return fmt.Sprintf("%s.%s.%06d%s", base, name, index, suffix)
}

// parseName takes the last element of a path apart. It is the inverse of
// fileName: a name that is not written exactly as fileName writes it is
// somebody else's.
func parseName(baseName, file string) (name string, index uint64, ok bool) {
	rest, ok := strings.CutPrefix(file, baseName+".")
	if !ok {
		return "", 0, false
	}
	if rest, ok = strings.CutSuffix(rest, suffix); !ok {
		return "", 0, false
	}
	name, digits, ok := strings.Cut(rest, ".")
	if !ok || name == "" || len(digits) < 6 {
		return "", 0, false
	}
	for i := range len(name) {
		if !isNameByte(name[i]) {
			return "", 0, false
		}
	}
	index, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || fmt.Sprintf("%06d", index) != digits {
		return "", 0, false
	}
	return name, index, true
}
