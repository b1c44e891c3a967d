// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// pattern is one entry of include.
type pattern struct {
	text string
	// base is the directory in front of the first wildcard: what the pattern
	// finds lies in it, unless follow_symlinks is set.
	base           string
	followSymlinks bool
}

// match is a file that a pattern found.
type match struct {
	path, base string
	info       fs.FileInfo
}

// refusal is why something that a pattern found is not read.
type refusal struct {
	path string
	err  error
}

var (
	errLeadsOut   = errors.New("a symbolic link leads out of the directory; follow_symlinks allows it")
	errNotRegular = errors.New("this is no regular file")
)

func newPattern(text string, followSymlinks bool) *pattern {
	base := filepath.Dir(text)
	for hasWildcard(base) {
		base = filepath.Dir(base)
	}
	return &pattern{text: text, base: base, followSymlinks: followSymlinks}
}

func hasWildcard(path string) bool { return strings.ContainsAny(path, `*?[\`) }

// find lists the files of a pattern. What is not a file, or lies elsewhere, is
// refused; what vanishes meanwhile is not there. err says that the directory
// cannot be searched. A directory that does not exist has no files.
func (p *pattern) find() (matches []match, refused []refusal, err error) {
	base, err := filepath.EvalSymlinks(p.base)
	if err == nil {
		err = readableDirectory(base)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, explain(err)
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, nil, explain(err)
	}
	defer func() { _ = root.Close() }()
	paths, err := filepath.Glob(p.text)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		found, err := p.inspect(root, base, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			refused = append(refused, refusal{path, explain(err)})
		default:
			matches = append(matches, found)
		}
	}
	return matches, refused, nil
}

// readableDirectory tells what filepath.Glob keeps to itself.
func readableDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return directory.Close()
}

// inspect finds out which file a path means, and whether it may be read.
func (p *pattern) inspect(root *os.Root, base, path string) (match, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return match{}, err
	}
	own := path
	if info.Mode()&fs.ModeSymlink != 0 {
		if own, err = filepath.EvalSymlinks(path); err != nil {
			return match{}, err
		}
	} else if rest, err := filepath.Rel(p.base, path); err == nil {
		own = filepath.Join(base, rest)
	}
	if p.followSymlinks {
		info, err = os.Stat(own)
	} else {
		info, err = statInside(root, base, own)
	}
	switch {
	case err != nil:
		return match{}, err
	case !info.Mode().IsRegular():
		return match{}, errNotRegular
	}
	return match{path: own, base: base, info: info}, nil
}

// statInside is os.Stat for a path that must not lead out of base.
func statInside(root *os.Root, base, path string) (fs.FileInfo, error) {
	inside, err := filepath.Rel(base, path)
	if err != nil || !filepath.IsLocal(inside) {
		return nil, errLeadsOut
	}
	info, err := root.Stat(inside)
	return info, leadsOut(err, path)
}

// leadsOut names the error of os.Root that it has no name for.
func leadsOut(err error, path string) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return err
	}
	if real, evalErr := filepath.EvalSymlinks(path); evalErr == nil && real != path {
		return errLeadsOut
	}
	return err
}

// openFile opens a file for reading, without following a link that leads out of
// its base, and without waiting for somebody to write into a pipe.
func openFile(path, base string, followSymlinks bool) (*os.File, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	if followSymlinks {
		return os.OpenFile(path, flags, 0)
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	inside, err := filepath.Rel(base, path)
	if err != nil || !filepath.IsLocal(inside) {
		return nil, errLeadsOut
	}
	file, err := root.OpenFile(inside, flags, 0)
	return file, leadsOut(err, path)
}

// explain adds what an operator needs to know of a refused access.
func explain(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w (running as uid %d)", err, os.Getuid())
	}
	return err
}
