# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""The end of a sink: in time, more than once, and with every event accounted for."""

from __future__ import annotations

import logging
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from collector import Collector
from conftest import wait_for
from sample_events import Event, NamedTupleEvent, emit_from_threads

from tokenspeed_otelcol.link import PushLink
from tokenspeed_otelcol.sink import Sink

MakeSink = Callable[..., Sink]


def seconds_of_close(sink: Sink, timeout: float | None) -> float:
    before = time.monotonic()
    sink.close(timeout)
    return time.monotonic() - before


def in_time(attempt: Callable[[], float], limit: float) -> None:
    """Run an attempt that returns seconds, until one is below the limit; three at most.

    A busy machine may hold up one of them; a close that waits too long is late in all.
    """
    seconds = [attempt()]
    while seconds[-1] >= limit and len(seconds) < 3:
        seconds.append(attempt())
    assert seconds[-1] < limit, seconds


def delivery_ended() -> bool:
    return all(thread.name != "tokenspeed-otelcol" for thread in threading.enumerate())


@pytest.mark.parametrize("queue_size", [100_000, 1000], ids=["room", "full queue"])
@pytest.mark.parametrize("state", ["never there", "gone", "standing still", "present"])
def test_close_returns_in_time_twice_in_a_row(
    make_sink: MakeSink, endpoint: str, tmp_path: Path, state: str, queue_size: int
) -> None:
    def attempt() -> float:
        with tempfile.TemporaryDirectory(dir=tmp_path) as directory:
            collector = Collector(endpoint, Path(directory))
            try:
                return close_twice(make_sink(queue_size=queue_size), collector, state)
            finally:
                collector.__exit__()

    in_time(attempt, 0.3)


def close_twice(sink: Sink, collector: Collector, state: str) -> float:
    """Bring the collector into the state, close twice, and return the seconds of the longer close."""
    emitted = 0
    if state != "never there":
        collector.start()
        sink.emit(Event(value=-1))
        emitted += 1
        wait_for(lambda: sink.ledger.sent == 1)
    if state == "gone":
        collector.kill()
    if state == "standing still":
        collector.stand_still()
        emitted += fill_the_way(sink)
    for value in range(2000):
        sink.emit(Event(value=value))
    emitted += 2000
    longer = max(seconds_of_close(sink, 0.2), seconds_of_close(sink, 0.2))
    wait_for(delivery_ended)
    ledger = sink.ledger
    assert ledger.sent + ledger.dropped_total() == emitted
    if state == "never there":
        assert ledger.sent == 0
    if state == "present":
        assert collector.await_end(ledger.sent, ledger.dropped_total()).lost == 0
    sink.emit(Event())
    assert ledger.sent + ledger.dropped_total() == emitted + 1
    assert ledger.dropped_by_reason()["closed"] == 1
    return longer


def fill_the_way(sink: Sink) -> int:
    """Emit until what the socket and the kernel can hold is full; return how many events that took."""
    emitted = 0
    while True:
        sent = sink.ledger.sent
        for _ in range(1000):
            sink.emit(Event(labels={"filler": "x" * 1000}))
        emitted += 1000
        time.sleep(0.1)
        if sent == sink.ledger.sent:
            return emitted


@pytest.mark.parametrize(
    ("timeout", "limit"), [(None, 1.1), (0, 0.1), (0.0, 0.1), (-5, 0.1), (float("-inf"), 0.1), (float("nan"), 0.1)]
)
def test_timeouts(make_sink: MakeSink, timeout: float | None, limit: float) -> None:
    def attempt() -> float:
        sink = make_sink()
        for _ in range(100):
            sink.emit(Event())
        seconds = seconds_of_close(sink, timeout)
        wait_for(delivery_ended)
        assert sink.ledger.dropped_by_reason()["unsent"] == 100
        return seconds

    in_time(attempt, limit)


@pytest.mark.parametrize("timeout", [3600, 1e300, float("inf")])
def test_a_long_timeout_is_not_used_up(make_sink: MakeSink, collector: Collector, timeout: float) -> None:
    with collector:
        sink = make_sink()
        sink.emit(Event())
        assert seconds_of_close(sink, timeout) < 5
        assert sink.ledger.sent == 1


def test_a_sink_without_events_closes_at_once(make_sink: MakeSink, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sink = make_sink()
    assert seconds_of_close(sink, 5) < 1
    assert seconds_of_close(sink, 5) < 1
    assert caplog.messages == ["otelcol metric output closed: sent 0, dropped 0"]
    sink.emit(Event())
    assert sink.ledger.dropped_by_reason()["closed"] == 1
    assert delivery_ended()


def test_the_queue_is_drained_within_the_time(make_sink: MakeSink, collector: Collector) -> None:
    sink = make_sink(flush_interval_ms=60_000, queue_size=100_000, batch_events=8192)
    with collector:
        for value in range(4000):
            sink.emit(Event(value=value))
        sink.close(5)
        assert sink.ledger.sent == 4000
        assert collector.await_end(4000, 0).values == list(range(4000))


def test_a_collector_that_comes_while_closing_gets_the_queue(make_sink: MakeSink, collector: Collector) -> None:
    sink = make_sink()
    for value in range(4000):
        sink.emit(Event(value=value))
    threading.Timer(0.3, collector.start).start()
    sink.close(10)
    assert collector.await_end(4000, 0).values == list(range(4000))


def test_a_slow_collector_makes_the_rest_of_the_queue_unsent(make_sink: MakeSink, collector: Collector) -> None:
    sink = make_sink(queue_size=20_000)
    with collector:
        sink.emit(Event())
        wait_for(lambda: sink.ledger.sent == 1)
        collector.stand_still()
        for _ in range(20_000):
            sink.emit(Event(labels={"filler": "x" * 2000}))
        sink.close(0.5)
        wait_for(delivery_ended)
        dropped = sink.ledger.dropped_by_reason()
        assert dropped["unsent"] > 0
        assert sink.ledger.sent + sink.ledger.dropped_total() == 20_001
        collector.go_on()


@pytest.fixture
def restless() -> Iterator[None]:
    """Let the interpreter switch threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("start", ["before the emits", "with the emits"])
@pytest.mark.parametrize("attempt", range(5))
def test_no_event_escapes_a_close_among_emits(
    make_sink: MakeSink, collector: Collector, start: str, attempt: int
) -> None:
    """Eight threads emit while two others close; every event is sent or dropped, none both."""
    with collector:
        sink = make_sink()
        if start == "before the emits":
            sink.emit(Event(value=-1))
        closers = [threading.Timer(0.002 * attempt, sink.close, [2.0]) for _ in range(2)]
        for closer in closers:
            closer.start()
        emit_from_threads(sink, threads=8, each=500)
        for closer in closers:
            closer.join()
        emitted = 4000 + (start == "before the emits")
        ledger = sink.ledger
        assert ledger.sent + ledger.dropped_total() == emitted
        assert not sink._intake.records
        wait_for(lambda: collector.account().accepted == ledger.sent)
        values = collector.account().values
        assert len(set(values)) == len(values)


@pytest.mark.parametrize("delivering", [False, True])
def test_an_emit_that_close_overtakes_is_counted(make_sink: MakeSink, delivering: bool) -> None:
    """The emit has found room; close begins and ends before the emit has read its event."""
    sink = make_sink()
    if delivering:
        sink.emit(Event())

    class Overtaken(NamedTupleEvent):
        @property
        def labels(self) -> dict[str, str]:
            sink.close(0.1)
            wait_for(delivery_ended)
            return {}

    sink.emit(Overtaken())
    dropped = sink.ledger.dropped_by_reason()
    assert dropped["closed"] == 1
    assert sink.ledger.sent + sum(dropped.values()) == 1 + delivering


def test_what_the_delivery_has_in_hand_at_the_end_is_counted(
    make_sink: MakeSink, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer goes between the look at the socket and the send, again and again."""
    monkeypatch.setattr(PushLink, "send", lambda link, frames: False)
    with collector:
        sink = make_sink(batch_events=60)
        for _ in range(100):
            sink.emit(Event())
        sink.close(0.2)
        wait_for(delivery_ended)
        assert sink.ledger.sent == 0
        assert sink.ledger.dropped_by_reason()["unsent"] == 100
