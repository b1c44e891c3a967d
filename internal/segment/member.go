// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Compressor makes gzip members. It is large (about a megabyte at level 6) and
// serves any number of writers, one after the other.
type Compressor struct {
	out bytes.Buffer
	zip *gzip.Writer
}

// keepBuffer is how large an output buffer may be to be kept for the next
// member.
const keepBuffer = 1 << 20

// noTime is how a gzip header says that it gives no time.
var noTime = time.Unix(0, 0)

// NewCompressor makes a compressor; level is 1 (fastest) to 9 (smallest).
func NewCompressor(level int) (*Compressor, error) {
	c := &Compressor{}
	var err error
	c.zip, err = gzip.NewWriterLevel(&c.out, level)
	return c, err
}

// member returns one complete gzip member, without a name or a time in its
// header. The result is valid until the next call.
func (c *Compressor) member(text []byte) ([]byte, error) {
	if c.out.Cap() > keepBuffer {
		c.out = bytes.Buffer{}
	}
	c.out.Reset()
	c.zip.Reset(&c.out)
	c.zip.ModTime = noTime // the zero time would be written as some time
	if _, err := c.zip.Write(text); err != nil {
		return nil, err
	}
	if err := c.zip.Close(); err != nil {
		return nil, err
	}
	return c.out.Bytes(), nil
}
