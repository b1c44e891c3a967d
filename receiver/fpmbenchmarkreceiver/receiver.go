// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/lograte"
	"github.com/otelcol-fpm/otelcol-fpm/internal/shutdown"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmbenchmarkreceiver/internal/metadata"
)

// transport names what the receiver reads, in the Collector's own telemetry.
const transport = "file"

// benchmarkReceiver is one instance for all pipelines of one configuration.
type benchmarkReceiver struct {
	config   *Config
	settings receiver.Settings
	logger   *zap.Logger
	forget   func()

	metrics consumer.Metrics // nil without a metrics pipeline
	logs    consumer.Logs    // nil without a logs pipeline

	report   *receiverhelper.ObsReport
	ledger   ledger
	lines    lograte.Limiter
	status   status
	hostname string

	// What follows belongs to the goroutine of run.
	tracker   *tracker
	delivered *delivered
	// followed are the sidecars that merged files named, and of which run.
	followed map[string]string
	// unreadable are the files that the status names.
	unreadable map[string]bool
	// unasked are the files that wait for the storage to answer.
	unasked map[string]*trackedFile
	// beyond is how many files were left out, as they are more than maxFiles.
	beyond, maxFiles int

	startOnce, stopOnce sync.Once
	startErr, stopErr   error
	stopped             chan struct{} // nil before Start
	cancel              context.CancelFunc
	running             sync.WaitGroup
}

func newReceiver(config *Config, settings receiver.Settings, forget func()) *benchmarkReceiver {
	return &benchmarkReceiver{
		config:     config,
		settings:   settings,
		logger:     settings.Logger,
		forget:     forget,
		tracker:    newTracker(config.Settle, config.IncompleteAfter),
		delivered:  newDelivered(),
		followed:   make(map[string]string),
		unreadable: make(map[string]bool),
		unasked:    make(map[string]*trackedFile),
		maxFiles:   maxFiles,
	}
}

// Start implements component.Component. It is called once for each signal; the
// first call starts everything.
func (r *benchmarkReceiver) Start(ctx context.Context, host component.Host) error {
	r.status.addHost(host)
	r.startOnce.Do(func() { r.startErr = r.start(ctx, host) })
	return r.startErr
}

func (r *benchmarkReceiver) start(ctx context.Context, host component.Host) error {
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: r.settings.ID, Transport: transport, LongLivedCtx: true, ReceiverCreateSettings: r.settings,
	})
	if err != nil {
		return err
	}
	builder, err := metadata.NewTelemetryBuilder(r.settings.TelemetrySettings)
	if err != nil {
		return err
	}
	if err := r.delivered.open(ctx, host, r.config.Storage, r.settings.ID); err != nil {
		return err
	}
	r.report = report
	r.ledger = ledger{counters: builder}
	r.ledger.begin()
	if r.hostname, err = os.Hostname(); err != nil {
		r.hostname = "localhost"
	}
	// The context lives longer than Start's own.
	running, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.stopped = make(chan struct{})
	r.running.Go(func() { r.run(running) })
	return nil
}

// run looks for files and delivers runs until stopped.
func (r *benchmarkReceiver) run(ctx context.Context) {
	ticker := time.NewTicker(r.config.PollInterval)
	defer ticker.Stop()
	for {
		r.scan(ctx, time.Now())
		r.remember(ctx)
		for _, run := range r.tracker.due(time.Now()) {
			if r.stopping() {
				return
			}
			r.deliver(ctx, run)
		}
		select {
		case <-r.stopped:
			return
		case <-ticker.C:
		}
	}
}

func (r *benchmarkReceiver) stopping() bool {
	select {
	case <-r.stopped:
		return true
	default:
		return false
	}
}

// errHanging is the error of a Shutdown that left a consumer behind.
var errHanging = errors.New("a consumer did not return before the end of shutdown; the run it holds is delivered after the next start")

// Shutdown implements component.Component. A delivery that is under way is
// finished, within the deadline of ctx or shutdown.Timeout; what is not delivered
// by then is delivered after the next start.
func (r *benchmarkReceiver) Shutdown(ctx context.Context) error {
	r.stopOnce.Do(func() {
		r.forget()
		if r.stopped != nil {
			r.stopErr = r.stop(ctx)
		}
	})
	return r.stopErr
}

func (r *benchmarkReceiver) stop(ctx context.Context) error {
	close(r.stopped)
	var err error
	if !shutdown.Wait(ctx, &r.running, r.cancel) {
		err = errHanging
	}
	r.ledger.counters.Shutdown()
	return errors.Join(err, r.delivered.close(context.WithoutCancel(ctx)))
}

// warn logs at most one line a source, reason and ten seconds.
func (r *benchmarkReceiver) warn(source, reason, text string, fields ...zap.Field) {
	show, hidden := r.lines.Allow(lograte.Key{Source: source, Reason: reason}, time.Now())
	if !show {
		return
	}
	if hidden > 0 {
		fields = append(fields, zap.Int("not_shown", hidden))
	}
	r.logger.Warn(text, append(fields, zap.String("reason", reason))...)
}
