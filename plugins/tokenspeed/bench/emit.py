# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""What an emit costs: eight threads on one core, in every state of the collector.

    python bench/emit.py            prints percentiles of each state
    python bench/emit.py --check    and fails when a 95th percentile is 2 µs or more

The clock's own cost, measured beside, is in the numbers. `queued` says how many of
the events were queued; the others were dropped because the queue was full. Where a
collector takes them, the threads rest whenever the queue is half full; elsewhere
they do not. In a queue of a million every event takes memory that the process did
not have yet, which is the most that an emit can cost.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HERE / "src"), str(HERE / "tests")]

from collector import Collector  # noqa: E402
from sample_events import Event  # noqa: E402

from tokenspeed_otelcol import create_sink  # noqa: E402
from tokenspeed_otelcol.sink import Sink  # noqa: E402

LIMIT_NS = 2000
THREADS = 8


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this thread, and those it starts meanwhile, on one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def measure(emit: Callable[[Event], None], each: int, has_room: Callable[[], bool] = lambda: True) -> list[int]:
    """Return what every call took, nanoseconds, sorted. Rests every 100 events until there is room."""
    times: list[list[int]] = [[0] * each for _ in range(THREADS)]
    event = Event(value=1.5)

    def run(mine: list[int]) -> None:
        clock = time.perf_counter_ns
        for step in range(each):
            before = clock()
            emit(event)
            mine[step] = clock() - before
            while step % 100 == 0 and not has_room():
                time.sleep(0.001)

    threads = [threading.Thread(target=run, args=[mine]) for mine in times]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(time for mine in times for time in mine)


def show(name: str, times: list[int], more: str = "") -> int:
    """Print the percentiles, and return the 95th."""
    at = {share: times[int(len(times) * share)] for share in (0.5, 0.95, 0.99, 0.999)}
    print(
        f"{name:<24} p50 {at[0.5] / 1e3:7.3f} µs   p95 {at[0.95] / 1e3:7.3f} µs   p99 {at[0.99] / 1e3:7.3f} µs"
        f"   p99.9 {at[0.999] / 1e3:9.3f} µs   max {times[-1] / 1e6:8.3f} ms   {more}"
    )
    return at[0.95]


def in_state(state: str, each: int) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as directory:
        collector = Collector(endpoint, Path(directory))
        if state in ("collector runs", "stopped collector"):
            collector.start()
        with on_one_core():
            queue_size = {"full queue": 10, "queue of a million": 1_000_000}.get(state, 10_000)
            sink: Sink = create_sink({"endpoint": endpoint, "queue_size": queue_size})
            sink.emit(Event())
            if state == "stopped collector":
                while not sink.ledger.sent:
                    time.sleep(0.01)
                collector.stand_still()
            rests = state == "collector runs"
            times = measure(sink.emit, each, lambda: not rests or len(sink._intake.records) < queue_size / 2)
        sink.close(0.2)
        collector.__exit__()
        queued = THREADS * each - sink.ledger.dropped_by_reason()["queue_full"]
        return show(state, times, f"queued {queued:,} of {THREADS * each:,}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=int, default=50_000, help="events of each thread")
    parser.add_argument("--check", action="store_true", help="fail when a 95th percentile is 2 µs or more")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with on_one_core():
        show("the clock alone", measure(lambda event: None, arguments.each))
    states = ["collector runs", "no collector", "stopped collector", "full queue", "queue of a million"]
    slow = [state for state in states if in_state(state, arguments.each) >= LIMIT_NS]
    if arguments.check and slow:
        sys.exit(f"the 95th percentile is {LIMIT_NS / 1000} µs or more: {', '.join(slow)}")


if __name__ == "__main__":
    main()
