// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/load"
)

// readRun reads the files of one run and checks it. A sidecar that a merged file
// names is read too, and only missed on stderr when it cannot be used. All files
// that cannot be read are in the error.
func readRun(files []string, stderr io.Writer) (*benchmark.Run, error) {
	var artifacts []*benchmark.Artifact
	var problems []error
	sidecar := false
	for _, file := range files {
		a, _, err := load.File(file, document.MaxBytes)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", file, err))
			continue
		}
		sidecar = sidecar || a.Kind == benchmark.Sidecar
		artifacts = append(artifacts, a)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	benchmark.Sort(artifacts)
	if artifacts[0].Kind == benchmark.Sidecar {
		return nil, errors.New("only sidecars; want a rank or merged file")
	}
	checker := benchmark.NewChecker()
	for _, a := range artifacts {
		if a.Kind == benchmark.Sidecar {
			if err := checker.AddSidecar(a); err != nil {
				return nil, fmt.Errorf("%s: %w", a.File, err)
			}
			continue
		}
		checker.Add(a)
		if !sidecar && a.Kind == benchmark.Merged {
			sidecar = followSidecar(checker, a, stderr)
		}
	}
	return checker.Finish(), nil
}

// followSidecar adds the sidecar that a merged file names, if it is there.
func followSidecar(checker *benchmark.Checker, merged *benchmark.Artifact, stderr io.Writer) bool {
	for _, path := range load.SidecarPaths(merged) {
		a, _, err := load.File(path, document.MaxBytes)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && a.Kind != benchmark.Sidecar:
			err = fmt.Errorf("got a %s file, want a sidecar", a.Kind)
		case err == nil:
			err = checker.AddSidecar(a)
		}
		if err == nil {
			return true
		}
		_, _ = fmt.Fprintf(stderr, "fpmbench: no worker replies: %s: %s\n", path, printable(err.Error()))
	}
	return false
}
