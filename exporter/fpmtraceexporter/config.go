// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/segment"
)

// Config is the configuration of fpm_trace. The README describes every key.
type Config struct {
	// Enabled also takes 1/0, on/off and yes/no.
	Enabled        bool          `mapstructure:"enabled"`
	Path           string        `mapstructure:"path"`
	Mode           string        `mapstructure:"mode"`
	SampleInterval time.Duration `mapstructure:"sample_interval"`
	// RollBytes is uncompressed.
	RollBytes            int64         `mapstructure:"roll_bytes"`
	MaxSegments          int           `mapstructure:"max_segments"`
	FlushInterval        time.Duration `mapstructure:"flush_interval"`
	QueueSize            int           `mapstructure:"queue_size"`
	QueueBytes           int64         `mapstructure:"queue_bytes"`
	CompressionLevel     int           `mapstructure:"compression_level"`
	Fsync                string        `mapstructure:"fsync"`
	MaxAge               time.Duration `mapstructure:"max_age"`
	MaxTotalBytes        int64         `mapstructure:"max_total_bytes"`
	DirectoryPermissions string        `mapstructure:"directory_permissions"`
	MaxOpenProducers     int           `mapstructure:"max_open_producers"`
	MaxKeys              int           `mapstructure:"max_keys"`

	// badEnabled is a value of enabled that is none, for Validate.
	badEnabled string
}

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

// The values of mode, as the rows name them too, and of fsync.
const (
	modeSampled = "sampled"
	modeFull    = "full"

	fsyncNever = "never"
	fsyncRoll  = "roll"
	fsyncFlush = "flush"
)

func createDefaultConfig() component.Config {
	return &Config{
		Enabled:              true,
		Path:                 "/tmp/dynamo-fpm",
		Mode:                 modeSampled,
		SampleInterval:       5 * time.Second,
		RollBytes:            256 << 20,
		MaxSegments:          4,
		FlushInterval:        time.Second,
		QueueSize:            8192,
		QueueBytes:           64 << 20,
		CompressionLevel:     3,
		Fsync:                fsyncRoll,
		DirectoryPermissions: "0755",
		MaxOpenProducers:     1024,
		MaxKeys:              65536,
	}
}

// Unmarshal reads enabled itself, because a bool takes neither 1 nor "on",
// which are what people write into DYN_FPM_TRACE.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if conf.IsSet("enabled") {
		word := fmt.Sprint(conf.Get("enabled"))
		enabled, ok := switchWords[strings.ToLower(strings.TrimSpace(word))]
		c.Enabled, c.badEnabled = enabled, ""
		if !ok {
			c.badEnabled = strconv.Quote(word)
		}
		conf.Delete("enabled") // from the copy that was made for this call
	}
	return conf.Unmarshal(c)
}

var switchWords = map[string]bool{
	"true": true, "1": true, "on": true, "yes": true,
	"false": false, "0": false, "off": false, "no": false,
}

// Validate reports every problem at once.
func (c *Config) Validate() error {
	var errs []error
	bad := func(key string, value any, allowed string) {
		errs = append(errs, fmt.Errorf("%s: %v is not allowed, %s", key, value, allowed))
	}
	positive := func(key string, value int64) {
		if value <= 0 {
			bad(key, value, "must be greater than 0")
		}
	}
	if c.badEnabled != "" {
		bad("enabled", c.badEnabled, "must be one of true, 1, on, yes, false, 0, off, no")
	}
	if err := segment.CheckPath(c.Path); err != nil {
		bad("path", strconv.Quote(c.Path), err.Error())
	}
	if mode := c.mode(); mode != modeSampled && mode != modeFull {
		bad("mode", strconv.Quote(c.Mode), "must be sampled or full")
	}
	if c.SampleInterval <= 0 {
		bad("sample_interval", c.SampleInterval, "must be greater than 0")
	}
	positive("roll_bytes", c.RollBytes)
	positive("max_segments", int64(c.MaxSegments))
	if c.FlushInterval <= 0 {
		bad("flush_interval", c.FlushInterval, "must be greater than 0")
	}
	positive("queue_size", int64(c.QueueSize))
	positive("queue_bytes", c.QueueBytes)
	if c.CompressionLevel < 1 || c.CompressionLevel > 9 {
		bad("compression_level", c.CompressionLevel, "must be 1 (fastest) to 9 (smallest)")
	}
	if _, ok := syncWords[c.Fsync]; !ok {
		bad("fsync", strconv.Quote(c.Fsync), "must be never, roll or flush")
	}
	if c.MaxAge < 0 {
		bad("max_age", c.MaxAge, "must be 0 (no limit) or more")
	}
	if c.MaxTotalBytes < 0 {
		bad("max_total_bytes", c.MaxTotalBytes, "must be 0 (no limit) or more")
	}
	if _, err := c.directoryMode(); err != nil {
		bad("directory_permissions", strconv.Quote(c.DirectoryPermissions), "must be octal like 0755, at most 0777, and let the owner write and enter (0300)")
	}
	positive("max_open_producers", int64(c.MaxOpenProducers))
	positive("max_keys", int64(c.MaxKeys))
	return errors.Join(errs...)
}

// mode is Mode without what Dynamo's variable allows around it.
func (c *Config) mode() string { return strings.ToLower(strings.TrimSpace(c.Mode)) }

var syncWords = map[string]segment.Sync{
	fsyncNever: segment.SyncNever, fsyncRoll: segment.SyncRoll, fsyncFlush: segment.SyncFlush,
}

func (c *Config) directoryMode() (fs.FileMode, error) {
	const ownerWriteEnter = 0o300
	mode, err := strconv.ParseUint(c.DirectoryPermissions, 8, 32)
	if err == nil && (mode > 0o777 || mode&ownerWriteEnter != ownerWriteEnter) {
		err = strconv.ErrRange
	}
	return fs.FileMode(mode), err
}

// retention is what bounds segments beyond max_segments.
func (c *Config) retention() segment.Retention {
	return segment.Retention{MaxAge: c.MaxAge, MaxTotalBytes: c.MaxTotalBytes}
}

func (c *Config) segmentOptions() segment.Options {
	mode, _ := c.directoryMode() // Validate has seen to it
	return segment.Options{
		Path: c.Path, RollBytes: c.RollBytes, MaxSegments: c.MaxSegments,
		DirectoryMode: mode, Sync: syncWords[c.Fsync],
	}
}
