// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
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
	// gatherTime lets messages come together while they come in quick succession,
	// so that one wake-up serves many. It is what an observation time may be late
	// by, or twice that where ranks send over 500 messages a second.
	gatherTime = 2 * time.Millisecond
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
	runners    [signalCount]*runner // nil without a pipeline
	status     status

	startOnce, stopOnce sync.Once
	startErr, stopErr   error

	poller        *zmtp.Poller       // of all endpoints; nil before Start
	cancelIntake  context.CancelFunc // nil before Start
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
	r.status.addHost(host)
	r.startOnce.Do(func() {
		if r.startErr = r.startPipes(); r.startErr == nil {
			r.startIntake()
		}
	})
	return r.startErr
}

// startPipes starts all that does not need an engine.
func (r *fpmReceiver) startPipes() error {
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: r.settings.ID, Transport: transport, LongLivedCtx: true, ReceiverCreateSettings: r.settings,
	})
	if err != nil {
		return err
	}
	if err := r.expand(); err != nil {
		return err
	}
	if r.metrics != nil {
		r.addRunner(signalMetrics, newMetricsPipe(r, r.metrics, report))
	}
	if r.logs != nil {
		r.addRunner(signalLogs, newLogsPipe(r, r.logs, report))
	}
	if err := r.startTelemetry(); err != nil {
		return err
	}
	// The contexts live longer than Start's own.
	deliver, cancelDeliver := context.WithCancel(context.Background())
	r.cancelDeliver = cancelDeliver
	r.stopPipes = make(chan struct{})
	for _, run := range r.runners {
		if run != nil {
			r.pipes.Go(func() { run.run(deliver, r.stopPipes) })
		}
	}
	return nil
}

func (r *fpmReceiver) addRunner(s signal, pipe pipe) {
	batchMessages := r.config.batchMessages(s)
	r.runners[s] = &runner{
		receiver: r, signal: s, pipe: pipe, batchMessages: batchMessages,
		queue: newQueue(r.config.QueueSize, r.config.QueueBytes, batchMessages),
	}
}

// startIntake subscribes to the endpoints.
func (r *fpmReceiver) startIntake() {
	r.warnOfPorts()
	intake, cancelIntake := context.WithCancel(context.Background())
	r.cancelIntake = cancelIntake
	r.poller = zmtp.NewPoller(gatherTime)
	for _, e := range r.endpoints {
		subscriber := zmtp.NewSubscriber(zmtp.SubscriberConfig{
			Network:        e.address.network,
			Address:        e.address.dial(),
			DialTimeout:    r.config.Dial.Timeout,
			InitialBackoff: r.config.Dial.InitialBackoff,
			MaxBackoff:     r.config.Dial.MaxBackoff,
			StaleAfter:     r.config.StaleAfter,
			Limits:         zmtp.Limits{MaxMessageBytes: r.config.MaxMessageBytes, MaxFrames: maxFrames},
			Poller:         r.poller,
		}, e)
		r.intake.Go(func() { subscriber.Run(intake) })
	}
	r.intake.Go(func() { r.watch(intake.Done()) })
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

// push gives an accepted message to each signal that has a pipeline.
func (r *fpmReceiver) push(m *message) {
	for _, run := range r.runners {
		if run != nil {
			run.push(m)
		}
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
