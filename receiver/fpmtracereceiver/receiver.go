// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/internal/shutdown"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmtracereceiver/internal/metadata"
)

const (
	// transport and format name what the receiver reads, in the Collector's own
	// telemetry.
	transport = "file"
	format    = "fpm_trace"
)

// traceReceiver is one instance for all pipelines of one configuration: files
// are read once, whatever the number of pipelines.
type traceReceiver struct {
	config   *Config
	settings receiver.Settings
	forget   func()
	exit     *exitGate

	metrics consumer.Metrics // nil without a metrics pipeline
	logs    consumer.Logs    // nil without a logs pipeline

	status status
	reader *reader

	startOnce, stopOnce sync.Once
	startErr, stopErr   error

	stop          chan struct{}
	cancelDeliver context.CancelFunc // nil before Start
	running       sync.WaitGroup
}

func newReceiver(config *Config, settings receiver.Settings, forget func()) *traceReceiver {
	r := &traceReceiver{config: config, settings: settings, forget: forget, exit: processExit}
	if config.ExitWhenDone {
		r.exit.enter(r)
	}
	return r
}

// Start implements component.Component. It is called once for each signal; the
// first call starts everything. That there is no file is no error.
func (r *traceReceiver) Start(ctx context.Context, host component.Host) error {
	r.status.addHost(host)
	r.startOnce.Do(func() { r.startErr = r.start(ctx, host) })
	return r.startErr
}

func (r *traceReceiver) start(ctx context.Context, host component.Host) error {
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: r.settings.ID, Transport: transport, LongLivedCtx: true, ReceiverCreateSettings: r.settings,
	})
	if err != nil {
		return err
	}
	counters, err := metadata.NewTelemetryBuilder(r.settings.TelemetrySettings)
	if err != nil {
		return err
	}
	store, err := openStore(ctx, host, r.config.Storage, r.settings.ID)
	if err != nil {
		counters.Shutdown()
		return err
	}
	r.stop = make(chan struct{})
	read := newReader(r.config, r.settings.Logger, ledger{counters}, store, &r.status, r.stop)
	scopes := scopes{name: metadata.ScopeName, version: r.settings.BuildInfo.Version}
	if r.metrics != nil {
		read.pipes[signalMetrics] = &metricsPipe{scopes: scopes, next: r.metrics, report: report, form: r.config.Histogram.Form(), ledger: &read.ledger}
	}
	if r.logs != nil {
		read.pipes[signalLogs] = &logsPipe{scopes: scopes, next: r.logs, report: report, body: fpm.NewBodyWriter()}
	}
	if err = errors.Join(read.resume(ctx), showFiles(counters, read)); err != nil {
		counters.Shutdown()
		return errors.Join(err, store.close(ctx))
	}
	read.ledger.begin()
	r.reader = read
	// The context lives longer than Start's own.
	deliver, cancel := context.WithCancel(context.Background())
	r.cancelDeliver = cancel
	r.running.Go(func() { r.run(deliver) })
	return nil
}

// showFiles shows the files as they are when somebody looks.
func showFiles(counters *metadata.TelemetryBuilder, read *reader) error {
	return errors.Join(
		counters.RegisterReceiverFpmTraceFilesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(read.followed.Load())
			return nil
		}),
		counters.RegisterReceiverFpmTraceUnreadBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(read.unread.Load())
			return nil
		}),
	)
}

// run reads until all is done or the receiver is stopped.
func (r *traceReceiver) run(ctx context.Context) {
	if done := r.reader.run(ctx); done && r.config.ExitWhenDone {
		r.exit.leave(r)
		r.settings.Logger.Info("All files are read: ending the process (exit_when_done)")
		r.exit.end(r.stop)
	}
}

// errHanging is the error of a Shutdown that left a consumer behind.
var errHanging = errors.New("a consumer did not return before the end of shutdown; what it holds is read again after a restart if storage is set")

// Shutdown implements component.Component. It stops reading, waits for the
// batch that is being delivered, and stores the position behind it. It returns
// within the deadline of ctx or shutdown.Timeout, whichever is first.
func (r *traceReceiver) Shutdown(ctx context.Context) error {
	r.stopOnce.Do(func() {
		r.status.end()
		r.forget()
		r.exit.leave(r)
		if r.cancelDeliver != nil {
			r.stopErr = r.shutdown(ctx)
		}
	})
	return r.stopErr
}

func (r *traceReceiver) shutdown(ctx context.Context) error {
	close(r.stop)
	if !shutdown.Wait(ctx, &r.running, r.cancelDeliver) {
		// The goroutine is left to the consumer that holds it; nothing of it is
		// stored any more.
		return errors.Join(errHanging, r.reader.store.close(context.WithoutCancel(ctx)))
	}
	r.reader.ledger.counters.Shutdown()
	return r.reader.store.close(context.WithoutCancel(ctx))
}
