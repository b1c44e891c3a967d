// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package load reads artifact files from disk, within a limit.
package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
)

// DefaultMaxBytes is the largest file that is read unless told otherwise.
const DefaultMaxBytes = 256 << 20

// File reads an artifact of at most maxBytes, and gives what the file was when
// it was read. Symbolic links are followed; what is no regular file is refused
// without opening it, since a pipe would not answer.
//
// A file that is not there is an error that is fs.ErrNotExist. Any other error
// is a *benchmark.ReadError.
func File(path string, maxBytes int64) (*benchmark.Artifact, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, unreadable(err)
	}
	if !info.Mode().IsRegular() {
		return nil, info, &benchmark.ReadError{
			Reason: benchmark.ReasonUnreadable, Field: "file", Got: info.Mode().Type().String(), Want: "a regular file",
		}
	}
	if info.Size() > maxBytes {
		return nil, info, tooLarge(info.Size(), maxBytes)
	}
	text, info, err := read(path, maxBytes)
	if err != nil {
		return nil, info, err
	}
	a, err := benchmark.Read(path, text)
	return a, info, err
}

func read(path string, maxBytes int64) ([]byte, fs.FileInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, unreadable(err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, unreadable(err)
	}
	var text bytes.Buffer
	text.Grow(int(min(info.Size(), maxBytes)) + bytes.MinRead)
	read, err := text.ReadFrom(io.LimitReader(file, maxBytes+1))
	switch {
	case err != nil:
		return nil, info, unreadable(err)
	case read > maxBytes: // it grew
		return nil, info, tooLarge(read, maxBytes)
	}
	return text.Bytes(), info, nil
}

func unreadable(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return &benchmark.ReadError{Reason: benchmark.ReasonUnreadable, Field: "file", Got: err.Error(), Want: "a file that can be read"}
}

func tooLarge(size, most int64) error {
	return &benchmark.ReadError{
		Reason: benchmark.ReasonSize, Field: "file", Got: fmt.Sprintf("%d bytes", size), Want: fmt.Sprintf("at most %d", most),
	}
}

// SidecarPaths are the places where the sidecar of a merged file may be: where
// the file says, and, as its folder may be mounted elsewhere here, beside the
// file under the same name.
func SidecarPaths(merged *benchmark.Artifact) []string {
	said := merged.SidecarPath()
	if said == "" {
		return nil
	}
	beside := filepath.Join(filepath.Dir(merged.File), filepath.Base(said))
	if beside == filepath.Clean(said) {
		return []string{beside}
	}
	return []string{said, beside}
}
