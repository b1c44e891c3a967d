// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"io/fs"
	"strings"
	"syscall"
)

// faultFS is the operating system's file system with faults on demand, and it
// counts what it is asked.
type faultFS struct {
	OS
	lists, lstats, removes int

	// room is how many bytes may still be written; negative: no limit. What
	// does not fit is cut, as on a full disk.
	room int
	// short makes the next write come out short without an error.
	short bool
	// The rest fail with this error while it is set.
	create, write, truncate, sync, closing, remove, list, lstat error
}

func newFaultFS() *faultFS { return &faultFS{room: -1} }

func (f *faultFS) List(dir string, visit func(fs.DirEntry)) error {
	f.lists++
	if f.list != nil {
		return f.list
	}
	return f.OS.List(dir, visit)
}

func (f *faultFS) Lstat(name string) (fs.FileInfo, error) {
	f.lstats++
	if f.lstat != nil {
		return nil, f.lstat
	}
	return f.OS.Lstat(name)
}

func (f *faultFS) Remove(name string) error {
	if strings.Contains(name, "write-probe") {
		return f.OS.Remove(name)
	}
	f.removes++
	if f.remove != nil {
		return f.remove
	}
	return f.OS.Remove(name)
}

func (f *faultFS) Create(name string) (File, error) {
	if f.create != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: f.create}
	}
	file, err := f.OS.Create(name)
	if err != nil {
		return nil, err
	}
	return &faultFile{File: file, fs: f}, nil
}

type faultFile struct {
	File
	fs *faultFS
}

func (f *faultFile) Write(data []byte) (int, error) {
	switch {
	case f.fs.write != nil:
		return 0, f.fs.write
	case f.fs.short:
		f.fs.short = false
		return f.File.Write(data[:len(data)/2])
	case f.fs.room >= 0 && len(data) > f.fs.room:
		n, _ := f.File.Write(data[:f.fs.room])
		f.fs.room = 0
		return n, syscall.ENOSPC
	case f.fs.room >= 0:
		f.fs.room -= len(data)
	}
	return f.File.Write(data)
}

func (f *faultFile) Truncate(size int64) error {
	if f.fs.truncate != nil {
		return f.fs.truncate
	}
	return f.File.Truncate(size)
}

func (f *faultFile) Sync() error {
	if f.fs.sync != nil {
		return f.fs.sync
	}
	return f.File.Sync()
}

func (f *faultFile) Close() error {
	err := f.File.Close()
	if f.fs.closing != nil {
		return f.fs.closing
	}
	return err
}
