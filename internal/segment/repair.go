// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// checkPlace notices that the segment was removed, replaced or changed by
// someone else: writing on would be into nowhere, or behind what is not ours.
func (w *Writer) checkPlace() error {
	info, err := w.set.fs.Lstat(w.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("segment %s was removed while it was written: what it held is lost", w.path)
	case err != nil:
		return err
	case !os.SameFile(info, w.info):
		return fmt.Errorf("segment %s was replaced while it was written: what it held is lost", w.path)
	case info.Size() != w.size:
		return fmt.Errorf("segment %s was changed by someone else: it has %d bytes, %d were written", w.path, info.Size(), w.size)
	}
	return nil
}

// cutBack removes what a failed write may have left behind the last good
// member. A file that cannot be cut is abandoned, and one without a member is
// removed again: it would be no gzip file.
func (w *Writer) cutBack(report *Report) {
	err := w.file.Truncate(w.size)
	if err != nil {
		report.Troubles = append(report.Troubles, fmt.Errorf("cut back segment: %w", err))
	}
	if err != nil || w.size == 0 {
		w.abandon(report)
	}
}

// abandon leaves the active segment as it is. Without a good member in it the
// file is removed, and its index used again.
func (w *Writer) abandon(report *Report) {
	if w.file == nil {
		return
	}
	if w.size > 0 {
		w.Seal(report)
		if !w.ours() {
			w.set.forget(w.name, w.index)
		}
		return
	}
	err := w.file.Close()
	if w.ours() {
		err = errors.Join(err, w.set.fs.Remove(w.path))
	}
	if err != nil {
		report.Troubles = append(report.Troubles, err)
	} else {
		w.set.mu.Lock()
		if w.state.next == w.index+1 {
			w.state.next = w.index
		}
		w.set.mu.Unlock()
	}
	w.file = nil
	w.size, w.text = 0, 0
}

func (w *Writer) ours() bool {
	info, err := w.set.fs.Lstat(w.path)
	return err == nil && os.SameFile(info, w.info)
}
