# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Processes that start, fork, and end in every way."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from collector import Account, Collector, Entry, account
from conftest import PACKAGE, Engine, wait_for
from sample_events import Event, emit_from_threads

from tokenspeed_otelcol import create_sink
from tokenspeed_otelcol.sink import Sink

MakeSink = Callable[..., Sink]


def by_process(collector: Collector) -> dict[int, Account]:
    entries: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in collector.entries():
        entries[entry.producer.pid].append(entry)
    return {pid: account(of_process) for pid, of_process in entries.items()}


def produce(config: dict[str, Any], count: int) -> None:
    sink = create_sink(config)
    for value in range(count):
        sink.emit(Event(value=value))
    sink.close(5)
    assert sink.ledger.sent == count


def test_spawned_processes_are_producers_of_their_own(engine: Engine, collector: Collector) -> None:
    """Only what the launcher made plain crosses to them."""
    with collector:
        launcher = engine.outputs.Launcher(
            reporter_names=["otelcol"], config_text=json.dumps({"otelcol": {"endpoint": collector.endpoint}})
        )
        launcher.sinks.emit(Event())
        context = multiprocessing.get_context("spawn")
        config = launcher.producer_configs["otelcol"]
        workers = [context.Process(target=produce, args=[config, 1000]) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(30)
            assert worker.exitcode == 0
        launcher.close(5.0)
        wait_for(lambda: sum(whole.accepted for whole in by_process(collector).values()) == 2001)
        assert {pid: whole.accepted for pid, whole in by_process(collector).items()} == {
            os.getpid(): 1,
            workers[0].pid: 1000,
            workers[1].pid: 1000,
        }


def test_a_closed_sink_is_let_go(collector: Collector) -> None:
    with collector:
        sink = create_sink({"endpoint": collector.endpoint})
        sink.emit(Event())
        sink.close(5)
        gone = weakref.ref(sink)
        del sink
        assert gone() is None


def in_fork(run: Callable[[], None]) -> int:
    """Run in a forked child and return its process id; a child that fails, fails the test."""
    pid = os.fork()
    if pid == 0:
        try:
            run()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    deadline = time.monotonic() + 30
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            assert status == 0
            return pid
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise AssertionError("the child hangs")
        time.sleep(0.005)


def test_a_fork_after_the_first_emit_leaves_both_working(make_sink: MakeSink, collector: Collector) -> None:
    with collector:
        sink = make_sink(flush_interval_ms=200)
        sink.emit(Event(value=-1))
        wait_for(lambda: sink.ledger.sent == 1)
        # These are in the queue at the fork, and the parent's alone.
        for value in range(100):
            sink.emit(Event(value=value))

        def child() -> None:
            assert (sink.ledger.sent, sink.ledger.dropped_total()) == (0, 0)
            for value in range(1000, 1500):
                sink.emit(Event(value=value))
            sink.close(5)
            assert sink.ledger.sent == 500

        pid = in_fork(child)
        for value in range(100, 200):
            sink.emit(Event(value=value))
        sink.close(5)
        assert sink.ledger.sent == 201
        wait_for(lambda: sum(whole.accepted for whole in by_process(collector).values()) == 701)
        accounts = by_process(collector)
        assert accounts[pid].values == list(range(1000, 1500))
        assert accounts[os.getpid()].values == list(range(-1, 200))


def test_a_fork_before_the_first_emit(make_sink: MakeSink, collector: Collector) -> None:
    with collector:
        sink = make_sink()

        def child() -> None:
            sink.emit(Event())
            sink.close(5)
            assert sink.ledger.sent == 1

        in_fork(child)
        sink.emit(Event())
        sink.close(5)
        wait_for(lambda: len(by_process(collector)) == 2)


def test_a_closed_sink_is_closed_in_a_fork_too(make_sink: MakeSink) -> None:
    sink = make_sink()
    sink.close(0)

    def child() -> None:
        sink.emit(Event())
        assert sink.ledger.dropped_by_reason()["closed"] == 1
        before = time.monotonic()
        sink.close(5)
        assert time.monotonic() - before < 0.5

    in_fork(child)


def test_forks_among_emits_and_deliveries_never_hang(make_sink: MakeSink, collector: Collector) -> None:
    with collector:
        sink = make_sink(flush_interval_ms=1)
        stop = threading.Event()

        def emit() -> None:
            while not stop.is_set():
                sink.emit(Event())
                time.sleep(0.0001)

        emitters = [threading.Thread(target=emit) for _ in range(3)]
        for emitter in emitters:
            emitter.start()

        def child() -> None:
            for value in range(10):
                sink.emit(Event(value=value))
            sink.close(10)
            assert sink.ledger.sent == 10

        try:
            children = [in_fork(child) for _ in range(20)]
        finally:
            stop.set()
            for emitter in emitters:
                emitter.join()
        sink.close(5)
        wait_for(lambda: all(by_process(collector)[pid].accepted == 10 for pid in children))


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    search = [str(PACKAGE / "src"), str(PACKAGE / "tests"), str(PACKAGE / "tests" / "stub")]
    program = f"""import sys; sys.path[:0] = {search!r}
import logging, os, time
logging.basicConfig(level=logging.INFO)
from tokenspeed_otelcol import create_sink
from sample_events import Event
sink = create_sink({{"endpoint": sys.argv[1]}})
{code}"""
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("ending", ["", "sys.exit(3)", "raise RuntimeError('engine failed')"])
def test_a_process_that_ends_without_close_delivers_its_queue(collector: Collector, ending: str) -> None:
    with collector:
        process = python(f"for value in range(3000): sink.emit(Event(value=value))\n{ending}", collector.endpoint)
        _, log = process.communicate(timeout=30)
        assert "sent 3000, dropped 0" in log
        collector.await_end(3000, 0)


def emit_and_end(sink_or_config: Sink | dict[str, Any], ending: str) -> None:
    sink = sink_or_config if isinstance(sink_or_config, Sink) else create_sink(sink_or_config)
    for value in range(100):
        sink.emit(Event(value=value))
    if ending == "exits":
        sys.exit(3)
    if ending == "raises":
        raise RuntimeError("engine failed")


@pytest.mark.parametrize("ending", ["returns", "exits", "raises"])
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_multiprocessing_child_that_ends_without_close_delivers_its_queue(
    collector: Collector, method: str, ending: str
) -> None:
    """Forked ones end without running what is registered with atexit."""
    config = {"endpoint": collector.endpoint, "flush_interval_ms": 60_000}
    with collector:
        process_class = multiprocessing.get_context(method).Process  # type: ignore[attr-defined]
        worker = process_class(target=emit_and_end, args=[config, ending])
        worker.start()
        worker.join(30)
        assert worker.exitcode == {"returns": 0, "exits": 3, "raises": 1}[ending]
        assert collector.await_end(100, 0).values == list(range(100))


def test_a_multiprocessing_fork_delivers_by_the_sink_of_its_parent(make_sink: MakeSink, collector: Collector) -> None:
    """Each of the two its own events, and once."""
    with collector:
        sink = make_sink(flush_interval_ms=60_000)
        sink.emit(Event(value=-1))
        worker = multiprocessing.get_context("fork").Process(target=emit_and_end, args=[sink, "returns"])
        worker.start()
        worker.join(30)
        assert worker.exitcode == 0 and worker.pid is not None
        wait_for(lambda: sum(whole.accepted for whole in by_process(collector).values()) == 100)
        assert by_process(collector)[worker.pid].values == list(range(100))
        sink.close(5)
        wait_for(lambda: len(by_process(collector)) == 2)
        assert by_process(collector)[os.getpid()].values == [-1]


def test_a_process_that_ends_without_close_and_without_collector_ends_in_time(endpoint: str) -> None:
    before = time.monotonic()
    process = python("for value in range(3000): sink.emit(Event(value=value))", endpoint)
    _, log = process.communicate(timeout=30)
    assert "sent 0, dropped 3000 (unsent 3000)" in log
    assert time.monotonic() - before < 10
    assert process.returncode == 0


def test_a_killed_process_loses_its_queue_and_one_flush_interval_at_most(collector: Collector) -> None:
    """The last value that it says it has emitted tells how much is missing."""
    code = """
value = 0
while True:
    sink.emit(Event(value=value))
    value += 1
    if value % 20 == 0:
        os.write(1, b"%d\\n" % value)
    time.sleep(0.0002)
"""
    with collector:
        process = python(code, collector.endpoint)
        assert process.stdout is not None
        wait_for(lambda: collector.account().accepted > 1000)
        process.kill()
        emitted = [int(line) for line in process.communicate()[0].split()]
        time.sleep(0.5)
        whole = collector.account()
        assert whole.values == list(range(whole.accepted)), "a hole before the end"
        missing = emitted[-1] - whole.accepted
        # 0.1 s at 5,000 a second at most, and the 20 that are not said yet; three times that for a busy machine.
        assert missing <= 3 * (500 + 20)


def test_imports_nothing_for_the_first_time_in_the_background(collector: Collector) -> None:
    code = """
before = set(sys.modules)
sink.emit(Event()); sink.emit(Event(labels=None)); sink.emit(Event(value=object()))
time.sleep(0.5)
sink.close(1)
new = {name for name in set(sys.modules) - before}
assert not new, new
"""
    with collector:
        process = python(code, collector.endpoint)
        _, log = process.communicate(timeout=30)
        assert process.returncode == 0, log


def test_prometheus_client_is_not_needed(collector: Collector) -> None:
    code = """
sys.modules["prometheus_client"] = None
sink.emit(Event())
sink.close(5)
"""
    with collector:
        process = python(code, collector.endpoint)
        _, log = process.communicate(timeout=30)
        assert process.returncode == 0, log
        collector.await_end(1, 0)


def test_emits_from_threads_before_the_thread_runs(make_sink: MakeSink, collector: Collector) -> None:
    with collector:
        sink = make_sink(queue_size=100_000)
        emit_from_threads(sink, threads=8, each=1000)
        threads = [thread for thread in threading.enumerate() if thread.name == "tokenspeed-otelcol"]
        assert len(threads) == 1
        sink.close(5)
        assert sorted(collector.await_end(8000, 0).values) == list(range(8000))


def test_sources_carry_the_licence() -> None:
    lines = ["# Copyright The otelcol-fpm Authors", "# SPDX-License-Identifier: Apache-2.0"]
    sources: list[Path] = [*PACKAGE.glob("src/**/*.py"), *PACKAGE.glob("tests/**/*.py"), *PACKAGE.glob("bench/*.py")]
    assert len(sources) > 10
    for source in sources:
        assert source.read_text().splitlines()[:2] == lines, source
