// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// FS is the little that segments need of a file system, so that tests can put
// faults between.
type FS interface {
	MkdirAll(dir string, mode fs.FileMode) error
	// Create makes a file to append to. It fails with fs.ErrExist when the name
	// is taken by anything, a symbolic link included.
	Create(name string) (File, error)
	Lstat(name string) (fs.FileInfo, error)
	Remove(name string) error
	// List visits the entries of a directory in any order, without holding them
	// all in memory.
	List(dir string, visit func(fs.DirEntry)) error
	SyncDir(dir string) error
}

// File is an open segment.
type File interface {
	io.WriteCloser
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// OS is the operating system's file system.
type OS struct{}

// segmentMode lets other users read traces, as Dynamo's do; the directory
// decides who gets there.
const segmentMode = 0o644

// MkdirAll implements FS.
func (OS) MkdirAll(dir string, mode fs.FileMode) error { return os.MkdirAll(dir, mode) }

// Create implements FS.
func (OS) Create(name string) (File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, segmentMode)
	if err != nil {
		return nil, err // a nil *os.File would be a File
	}
	return file, nil
}

// Lstat implements FS.
func (OS) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// List implements FS.
func (OS) List(dir string, visit func(fs.DirEntry)) error {
	const batch = 1024
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	for {
		entries, err := file.ReadDir(batch)
		for _, entry := range entries {
			visit(entry)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// SyncDir implements FS.
func (OS) SyncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// explain adds what an operator needs to know of a refused access.
func explain(fsys FS, err error, dir string) error {
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	if info, statErr := fsys.Lstat(dir); statErr == nil {
		return fmt.Errorf("%w (running as uid %d; %s has mode %s)", err, os.Getuid(), dir, info.Mode())
	}
	return fmt.Errorf("%w (running as uid %d)", err, os.Getuid())
}
