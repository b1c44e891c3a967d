# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""What comes out of the socket for what is emitted."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zmq
from collector import Collector
from conftest import Pull, wait_for
from sample_events import LABELS, Event, NamedTupleEvent, StructEvent, emit_from_threads

from tokenspeed_otelcol import create_sink
from tokenspeed_otelcol.link import PushLink
from tokenspeed_otelcol.message import MAX_BYTES
from tokenspeed_otelcol.sink import Sink

MakeSink = Callable[..., Sink]


@pytest.mark.parametrize("shape", [Event, NamedTupleEvent, StructEvent])
def test_events_of_any_shape_arrive(make_sink: MakeSink, pull: Pull, shape: type) -> None:
    sink = make_sink()
    sink.emit(shape(timestamp_ns=7, metric="m", operation="observe", value=0.01, labels={"a": None}, weight=3))
    assert pull.message().events == [[7, "m", "observe", 0.01, {"a": None}, 3]]


def test_the_producer_names_the_process_and_the_sink(make_sink: MakeSink, pull: Pull) -> None:
    before = time.time_ns()
    producers = []
    for _ in range(2):
        sink = make_sink(resource={"zone": "a"})
        sink.emit(Event())
        sink.close(5)
        message, end = pull.messages_to_end(1, 0)
        assert message.producer == end.producer
        assert message.resource == end.resource == {"zone": "a"}
        producers.append(message.producer)
    assert {(p.host, p.pid) for p in producers} == {(socket.gethostname(), os.getpid())}
    assert before < producers[0].start_ns < producers[1].start_ns < time.time_ns()


@pytest.mark.parametrize("labels", [dict(LABELS), types.MappingProxyType(dict(LABELS))])
def test_labels_are_copied_before_emit_returns(make_sink: MakeSink, labels: Any) -> None:
    original = {"rank": "0"}
    labels = original if isinstance(labels, dict) else types.MappingProxyType(original)
    sink = make_sink()
    sink.emit(Event(labels=labels))
    original["rank"] = "1"
    (record,) = sink._intake.records
    assert record[4] == {"rank": "0"}


def test_seq_counts_events_and_messages_hold_a_batch(make_sink: MakeSink, pull: Pull) -> None:
    sink = make_sink(batch_events=100)
    for value in range(1050):
        sink.emit(Event(value=value))
    sink.close(5)
    messages = pull.messages_to_end(1050, 0)
    assert [value for message in messages for value in (event[3] for event in message.events)] == list(range(1050))
    seq = 0
    for message in messages:
        assert message.seq == seq
        assert len(message.events) <= 100
        seq += len(message.events)
    assert seq == sink.ledger.sent == 1050


def test_an_event_does_not_wait_longer_than_the_flush_interval(make_sink: MakeSink, pull: Pull) -> None:
    sink = make_sink(flush_interval_ms=300)
    sink.emit(Event())
    pull.message()
    before = time.monotonic()
    sink.emit(Event())
    pull.message()
    assert time.monotonic() - before < 0.6


def test_a_full_batch_does_not_wait_for_the_flush_interval(make_sink: MakeSink, pull: Pull) -> None:
    sink = make_sink(flush_interval_ms=60_000, batch_events=100)
    sink.emit(Event())
    for _ in range(300):
        sink.emit(Event())
    assert sum(len(pull.message().events) for _ in range(3)) >= 201


def test_the_last_message_tells_the_final_numbers(make_sink: MakeSink, pull: Pull) -> None:
    sink = make_sink()
    sink.emit(Event())
    sink.emit(Event(labels=None))
    sink.close(5)
    pull.messages_to_end(1, 1)


def test_drops_are_told_without_an_event_to_send(make_sink: MakeSink, pull: Pull) -> None:
    sink = make_sink()
    sink.emit(Event())
    assert pull.message().dropped_total == 0
    sink.emit(Event(labels=None))
    message = pull.message()
    assert (message.seq, message.dropped_total, message.events) == (1, 1, [])


class Unreadable:
    """An event whose every field raises."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError("no such field")


class UnreadableLabels:
    def keys(self) -> Any:
        raise RuntimeError("labels changed size")


UNWRITABLE = [
    Event(value=object()),
    Event(value=2**64),
    Event(labels={"a": "\ud800"}),
    Event(labels={"a": "x" * MAX_BYTES}),
    Event(metric="x" * MAX_BYTES),
]


@pytest.mark.parametrize(
    "bad",
    [None, object(), Unreadable(), Event(labels=None), Event(labels=7), Event(labels=UnreadableLabels()), *UNWRITABLE],
    ids=["none", "object", "unreadable", "no labels", "number", "labels raise",
         "value", "large", "surrogate", "long label", "long name"],
)  # fmt: skip
def test_a_bad_event_raises_nothing_and_costs_itself_alone(
    make_sink: MakeSink, pull: Pull, bad: Any, caplog: pytest.LogCaptureFixture
) -> None:
    sink = make_sink()
    for value in range(600):
        sink.emit(Event(value=value))
        if value == 300:
            sink.emit(bad)
    sink.close(5)
    messages = pull.messages_to_end(600, 1)
    assert [event[3] for message in messages for event in message.events] == list(range(600))
    assert sink.ledger.dropped_by_reason()["invalid"] == 1
    assert "dropped 1 events (invalid, 1 since start): the latest is metric" in caplog.text
    assert max(len(record.getMessage()) for record in caplog.records) < 700


def test_large_events_are_spread_over_messages(make_sink: MakeSink, pull: Pull) -> None:
    sink = make_sink()
    for value in range(40):
        sink.emit(Event(value=value, labels={"prompt": "x" * 100_000}))
    sink.close(5)
    messages = pull.messages_to_end(40, 0)
    assert [event[3] for message in messages for event in message.events] == list(range(40))
    assert max(len(message.events) for message in messages) <= MAX_BYTES // 100_000
    assert sink.ledger.dropped_total() == 0


def test_a_full_queue_drops_the_newest(make_sink: MakeSink, collector: Collector) -> None:
    sink = make_sink(queue_size=100)
    for value in range(1000):
        sink.emit(Event(value=value))
    assert sink.ledger.dropped_by_reason()["queue_full"] == 900
    with collector:
        sink.close(5)
        assert collector.await_end(100, 900).values == list(range(100))


def test_without_a_collector_events_wait_for_one(make_sink: MakeSink, collector: Collector) -> None:
    sink = make_sink()
    for value in range(5000):
        sink.emit(Event(value=value))
    time.sleep(0.3)
    assert sink.ledger.sent == 0
    with collector:
        wait_for(lambda: collector.account().accepted == 5000)
        sink.close(5)
        assert collector.await_end(5000, 0).values == list(range(5000))


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("kind", ["ipc", "ipv6", "name"])
def test_other_endpoints(kind: str, tmp_path: Path, port: int) -> None:
    if kind == "ipv6" and not has_ipv6():
        pytest.skip("this machine has no IPv6 loopback")
    endpoint = {
        "ipc": f"ipc://{tmp_path}/events.sock",
        "ipv6": f"tcp://[::1]:{port}",
        "name": f"tcp://localhost:{port}",
    }[kind]
    bound = f"tcp://127.0.0.1:{port}" if kind == "name" else endpoint
    with Collector(bound, tmp_path) as collector:
        sink = create_sink({"endpoint": endpoint})
        sink.emit(Event())
        sink.close(5)
        wait_for(lambda: len(collector.entries()) == 2)
        collector.kill()
        collector.start()
        sink = create_sink({"endpoint": endpoint})
        sink.emit(Event())
        sink.close(5)
        wait_for(lambda: len(collector.entries()) == 4)


def test_emit_may_interrupt_an_emit_of_the_same_thread(make_sink: MakeSink, collector: Collector) -> None:
    """As a signal handler does. With a lock in emit this would stand still for ever."""
    sink = make_sink(queue_size=100)
    interrupts = 0

    def handler(number: int, frame: object) -> None:
        nonlocal interrupts
        interrupts += 1
        sink.emit(Event())

    previous = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        with collector:
            emitted = 0
            deadline = time.monotonic() + 1
            while time.monotonic() < deadline:
                sink.emit(Event())
                emitted += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            sink.close(5)
            assert interrupts > 100
            assert sink.ledger.sent + sink.ledger.dropped_total() == emitted + interrupts
            collector.await_end(sink.ledger.sent, sink.ledger.dropped_total())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_a_thread_that_cannot_start_is_tried_again(
    make_sink: MakeSink, pull: Pull, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sink = make_sink(queue_size=10)
    with monkeypatch.context() as broken:

        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        broken.setattr(threading.Thread, "start", refuse)
        for value in range(15):
            sink.emit(Event(value=value))
    assert "cannot start the delivery thread: RuntimeError: can't start new thread" in caplog.text
    assert len(caplog.records) == 1
    assert sink.ledger.dropped_by_reason()["queue_full"] == 5

    def delivered() -> bool:
        sink.emit(Event(value=-1))
        return sink.ledger.sent >= 10

    wait_for(delivered)
    assert [event[3] for event in pull.message().events][:10] == list(range(10))


def test_a_thread_that_never_starts_leaves_nothing_uncounted(
    make_sink: MakeSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = make_sink()

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    for _ in range(15):
        sink.emit(Event())
    sink.close(0.2)
    assert sink.ledger.dropped_by_reason()["unsent"] == 15


def test_a_socket_that_the_system_refuses_is_tried_again(
    make_sink: MakeSink, pull: Pull, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sink = make_sink()
    refused = threading.Event()
    with monkeypatch.context() as broken:

        def refuse(link: PushLink) -> None:
            refused.set()
            raise zmq.ZMQError(errno.EMFILE)

        broken.setattr(PushLink, "open", refuse)
        for value in range(15):
            sink.emit(Event(value=value))
        assert refused.wait(5)
        wait_for(lambda: "cannot deliver: ZMQError: Too many open files" in caplog.text)
    assert [event[3] for event in pull.message().events] == list(range(15))
    assert sink.ledger.dropped_total() == 0


def test_a_socket_that_breaks_at_the_end_is_closed(
    make_sink: MakeSink, pull: Pull, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    links: list[PushLink] = []
    real = PushLink.open

    def opened(link: PushLink) -> zmq.Socket[bytes]:
        links.append(link)
        return real(link)

    monkeypatch.setattr(PushLink, "open", opened)
    sink = make_sink()
    sink.emit(Event(value=0))
    pull.message()

    def broken(link: PushLink, seconds: float) -> bool:
        raise zmq.ZMQError(errno.EMFILE)

    monkeypatch.setattr(PushLink, "ready", broken)
    sink.close(5)
    assert "cannot deliver: ZMQError: Too many open files" in caplog.text
    assert links[0]._socket is None
    assert links[0]._context is None


def test_a_socket_that_breaks_loses_no_event_in_hand(
    make_sink: MakeSink, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = make_sink()
    real, calls = PushLink.send, []

    def send(link: PushLink, frames: Any) -> bool:
        calls.append(1)
        if len(calls) == 2:
            raise zmq.ZMQError(zmq.ETERM)
        return real(link, frames)

    monkeypatch.setattr(PushLink, "send", send)
    sink.emit(Event(value=0))
    pull.message()
    sink.emit(Event(value=1))
    assert [event[3] for event in pull.message().events] == [1]
    sink.close(5)
    assert pull.message().seq == 2


def test_no_collector_logs_at_a_bounded_rate(make_sink: MakeSink, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    sink = make_sink(queue_size=10)
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        for _ in range(100):
            sink.emit(Event())
        time.sleep(0.001)
    assert len(caplog.records) == 1
    assert "the queue of 10 events is full" in caplog.text
    assert sink._config["endpoint"] in caplog.text
    sink.close(0.1)
    assert len(caplog.records) == 2


@pytest.mark.parametrize("state", ["present", "absent", "standing still", "full"])
def test_emit_does_not_wait_for_the_collector(make_sink: MakeSink, collector: Collector, state: str) -> None:
    sink = make_sink(queue_size=10 if state == "full" else 10_000)
    if state != "absent":
        collector.start()
    if state == "standing still":
        sink.emit(Event())
        wait_for(lambda: sink.ledger.sent == 1)
        collector.stand_still()
    before = time.process_time()
    slowest = emit_from_threads(sink, threads=8, each=10_000)
    busy = time.process_time() - before
    assert slowest < 1, "an emit has waited"
    assert busy / 80_000 < 50e-6
    sink.close(0.2)
    emitted = 80_001 if state == "standing still" else 80_000
    wait_for(lambda: sink.ledger.sent + sink.ledger.dropped_total() == emitted)


def test_a_connection_is_given_up_two_minutes_after_the_peer_went_silent(
    make_sink: MakeSink, pull: Pull, port: int
) -> None:
    sink = make_sink()
    sink.emit(Event())
    pull.message()
    timeouts = []
    for number in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(number))) as open_socket:
                if open_socket.getpeername()[1] == port:
                    timeouts.append(open_socket.getsockopt(socket.IPPROTO_TCP, 18))  # TCP_USER_TIMEOUT
        except (OSError, IndexError, TypeError):
            continue
    assert timeouts == [120_000]
