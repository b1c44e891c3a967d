// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/lograte"
	"github.com/otelcol-fpm/otelcol-fpm/internal/zmtp"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmreceiver/internal/metadata"
)

const (
	// transport names what the receiver speaks, in the Collector's own telemetry.
	transport = "zmq"
	// maxFrames is more than any FPM or event-plane message has; one with more
	// is refused by the connection.
	maxFrames = 16
	// shutdownTimeout bounds a Shutdown whose context has no deadline, which is
	// what the Collector gives.
	shutdownTimeout = 5 * time.Second
)

// fpmReceiver is one instance for all pipelines of one configuration: one
// socket an endpoint, whatever the number of pipelines.
type fpmReceiver struct {
	config    *Config
	settings  receiver.Settings
	logger    *zap.Logger
	forget    func()
	startTime time.Time

	metrics consumer.Metrics // nil without a metrics pipeline
	logs    consumer.Logs    // nil without a logs pipeline

	endpoints  []*endpoint
	identities *identities
	ranks      atomic.Int64
	ledger     ledger
	lines      lograte.Limiter
	queues     [signalCount]*queue // nil without a pipeline
	telemetry  *metadata.TelemetryBuilder

	hostsMu sync.Mutex
	hosts   []component.Host // one a pipeline signal

	startOnce sync.Once
	startErr  error
	stopOnce  sync.Once
	stopErr   error

	cancelIntake  context.CancelFunc
	cancelDeliver context.CancelFunc
	stopPipes     chan struct{}
	intake        sync.WaitGroup
	pipes         sync.WaitGroup
}

func newReceiver(config *Config, settings receiver.Settings, forget func()) *fpmReceiver {
	return &fpmReceiver{
		config:     config,
		settings:   settings,
		logger:     settings.Logger,
		forget:     forget,
		startTime:  time.Now(),
		identities: newIdentities(),
	}
}

// Start implements component.Component. It is called once for each signal; the
// first call starts everything. It returns at once, also when no engine is
// there.
func (r *fpmReceiver) Start(_ context.Context, host component.Host) error {
	r.hostsMu.Lock()
	r.hosts = append(r.hosts, host)
	r.hostsMu.Unlock()
	r.startOnce.Do(func() { r.startErr = r.start() })
	return r.startErr
}

func (r *fpmReceiver) start() error {
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: r.settings.ID, Transport: transport, LongLivedCtx: true, ReceiverCreateSettings: r.settings,
	})
	if err != nil {
		return err
	}
	if err := r.expand(); err != nil {
		return err
	}
	if err := r.startTelemetry(); err != nil {
		return err
	}
	r.warnOfPorts()

	// The contexts live longer than Start's own.
	intake, cancelIntake := context.WithCancel(context.Background())
	deliver, cancelDeliver := context.WithCancel(context.Background())
	r.cancelIntake, r.cancelDeliver = cancelIntake, cancelDeliver
	r.stopPipes = make(chan struct{})

	if r.metrics != nil {
		r.startPipe(deliver, signalMetrics, newMetricsPipe(r, r.metrics, report))
	}
	if r.logs != nil {
		r.startPipe(deliver, signalLogs, newLogsPipe(r, r.logs, report))
	}
	for _, e := range r.endpoints {
		subscriber := zmtp.NewSubscriber(zmtp.SubscriberConfig{
			Network:        e.address.network,
			Address:        e.address.dial(),
			DialTimeout:    r.config.Dial.Timeout,
			InitialBackoff: r.config.Dial.InitialBackoff,
			MaxBackoff:     r.config.Dial.MaxBackoff,
			StaleAfter:     r.config.StaleAfter,
			Limits:         zmtp.Limits{MaxMessageBytes: r.config.MaxMessageBytes, MaxFrames: maxFrames},
		}, e)
		r.intake.Go(func() { subscriber.Run(intake) })
	}
	r.intake.Go(func() { r.watch(intake.Done()) })
	return nil
}

func (r *fpmReceiver) startPipe(ctx context.Context, signal signal, pipe pipe) {
	dropped := &r.ledger.signals[signal].dropped
	queue := newQueue(r.config.QueueSize, r.config.QueueBytes, r.config.Batch.MaxMessages, func(messages int) {
		dropped.add(droppedQueueFull, int64(messages))
		r.warn(signal.String(), droppedQueueFull, "Oldest messages dropped: the pipeline is slower than the engines and the queue is full",
			zap.Stringer("signal", signal), zap.Int("messages", messages))
	})
	r.queues[signal] = queue
	run := &runner{receiver: r, signal: signal, queue: queue, pipe: pipe}
	r.pipes.Go(func() { run.run(ctx, r.stopPipes) })
}

// expand makes the endpoints of the configuration.
func (r *fpmReceiver) expand() error {
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "localhost"
	}
	for _, named := range r.config.engines() {
		settings := named.config
		base, err := parseEndpoint(settings.Endpoint)
		if err != nil {
			return err
		}
		addresses, err := base.expand(settings.DPStartRank, settings.DPSize)
		if err != nil {
			return err
		}
		own := &engine{
			base: base, namespace: settings.Namespace, component: settings.Component,
			instance: base.instance(hostname), attributes: settings.ResourceAttributes,
		}
		for _, address := range addresses {
			r.endpoints = append(r.endpoints, newEndpoint(r, own, address))
		}
	}
	return nil
}

// queue gives an accepted message to each signal that has a pipeline.
func (r *fpmReceiver) queue(m *message) {
	for _, queue := range r.queues {
		if queue != nil {
			queue.push(m)
		}
	}
}

// Shutdown implements component.Component. It stops reading, delivers what is
// queued, and returns within the deadline of ctx or shutdownTimeout.
func (r *fpmReceiver) Shutdown(ctx context.Context) error {
	r.stopOnce.Do(func() {
		r.forget()
		if r.cancelIntake != nil {
			r.stopErr = r.stop(ctx)
		}
	})
	return r.stopErr
}

func (r *fpmReceiver) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	defer r.telemetry.Shutdown()
	r.cancelIntake()
	r.intake.Wait() // at once: nothing in intake blocks
	close(r.stopPipes)
	// A consumer that hangs is told when the time is over.
	defer context.AfterFunc(ctx, r.cancelDeliver)()
	defer r.cancelDeliver()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.pipes.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done:
		return nil
	case <-time.After(time.Second):
		return errors.New("a consumer did not return before the end of shutdown")
	}
}

// warn logs at most one line a source, reason and ten seconds.
func (r *fpmReceiver) warn(source, reason, text string, fields ...zap.Field) {
	show, hidden := r.lines.Allow(lograte.Key{Source: source, Reason: reason}, time.Now())
	if !show {
		return
	}
	if hidden > 0 {
		fields = append(fields, zap.Int("not_shown", hidden))
	}
	r.logger.Warn(text, append(fields, zap.String("reason", reason))...)
}

// since is the receiver's monotonic clock, in nanoseconds.
func (r *fpmReceiver) since(t time.Time) int64 { return int64(t.Sub(r.startTime)) }

func (r *fpmReceiver) setScope(scope pcommon.InstrumentationScope) {
	scope.SetName(metadata.ScopeName)
	scope.SetVersion(r.settings.BuildInfo.Version)
}

func (r *fpmReceiver) reportEvent(event *componentstatus.Event) {
	r.hostsMu.Lock()
	defer r.hostsMu.Unlock()
	for _, host := range r.hosts {
		componentstatus.ReportStatus(host, event)
	}
}
