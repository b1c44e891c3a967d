// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-fpm/otelcol-fpm/internal/zmtp"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/metriceventreceiver/internal/metadata"
)

const (
	// transport names what the receiver speaks, in the Collector's own telemetry.
	transport = "zmq"

	// The receiver looks for idle producers and series a few times in the
	// shortest time to live, but not more often or rarely than this.
	minEvictInterval = 10 * time.Millisecond
	maxEvictInterval = 30 * time.Second
	evictsInTTL      = 4
)

// metricEventReceiver is one listener with its pipeline.
type metricEventReceiver struct {
	config   *Config
	settings receiver.Settings
	next     consumer.Metrics

	// All below are made by Start.
	log       *log
	ledger    ledger
	producers *producers
	delivery  *delivery
	intake    *intake
	server    *server

	cancelDeliver context.CancelFunc // nil before, and after Shutdown
	stopDelivery  chan struct{}
	background    sync.WaitGroup // delivery and eviction
}

func newReceiver(config *Config, settings receiver.Settings, next consumer.Metrics) *metricEventReceiver {
	return &metricEventReceiver{config: config, settings: settings, next: next}
}

// Start implements component.Component. It binds the endpoint, and does not wait
// for an engine.
func (r *metricEventReceiver) Start(ctx context.Context, host component.Host) error {
	endpoint, err := parseEndpoint(r.config.Endpoint)
	if err != nil {
		return err
	}
	permissions, err := parsePermissions(r.config.IPCPermissions)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, endpoint, permissions)
	if err != nil {
		return err
	}
	if err := r.startDelivery(endpoint); err != nil {
		listener.Close()
		return err
	}
	connections := &connections{
		intake: r.intake, ledger: r.ledger, log: r.log,
		limits: zmtp.Limits{MaxMessageBytes: r.config.MaxMessageBytes, MaxFrames: maxFrames},
		status: &status{host: host, endpoint: endpoint.String()},
	}
	connections.status.begin()
	r.server.start(listener, connections.serve)
	return nil
}

// startDelivery makes and starts all that needs no socket.
func (r *metricEventReceiver) startDelivery(endpoint address) error {
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
	maxEvents := r.config.Batch.MaxEvents
	r.log = &log{logger: r.settings.Logger}
	r.ledger = ledger{counters: builder}
	r.producers = newProducers(r.config)
	r.delivery = &delivery{
		next: r.next, report: report, queue: newQueue(queueEvents, maxEvents), ledger: r.ledger, log: r.log,
		timeout: r.config.Batch.Timeout, maxEvents: maxEvents, batch: batch{version: r.settings.BuildInfo.Version},
	}
	r.intake = &intake{
		producers: r.producers, delivery: r.delivery, ledger: r.ledger, log: r.log,
		endpoint: endpoint.String(), maxEvents: maxEvents,
	}
	r.server = newServer(endpoint, r.config.MaxConnections, r.ledger, r.log)
	if err := r.startTelemetry(); err != nil {
		builder.Shutdown()
		return err
	}
	r.ledger.begin()

	// The context lives longer than Start's own.
	deliver, cancelDeliver := context.WithCancel(context.Background())
	r.cancelDeliver = cancelDeliver
	r.stopDelivery = make(chan struct{})
	r.background.Go(func() { r.delivery.run(deliver, r.stopDelivery) })
	r.background.Go(func() { r.evict(r.stopDelivery) })
	return nil
}

// evict forgets idle producers and series until stop is closed.
func (r *metricEventReceiver) evict(stop <-chan struct{}) {
	interval := min(r.config.ProducerTTL, r.config.SeriesTTL) / evictsInTTL
	ticker := time.NewTicker(min(max(interval, minEvictInterval), maxEvictInterval))
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			r.producers.evict(time.Now(), r.config.ProducerTTL, r.config.SeriesTTL)
		}
	}
}
