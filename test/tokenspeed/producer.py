# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""One producer process: threads that observe, and an account of what they did.

It writes `producer-N.json` at its end, and `producer-N.prom`, the page of
prometheus_client, when there is a reference.
"""

from __future__ import annotations

import itertools
import json
import logging
import multiprocessing
import os
import random
import sys
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from tokenspeed.runtime.metrics.events import MetricEvent
from tokenspeed.runtime.metrics.outputs import ProcessOutputs
from workload import WORKLOADS, Observation

DRAIN_SECONDS = 20.0
"""How long the plugin's queue may take to empty at the end."""
CLOSE_SECONDS = 10.0


@dataclass(frozen=True)
class Options:
    workload: str
    threads: int
    events: int
    """Of each thread, at least."""
    burst: int
    """Events between two rests."""
    rest: float
    """Seconds."""
    seed: int
    folder: Path
    reference: bool

    @property
    def gate(self) -> Path:
        """While this file is there, nothing is emitted."""
        return self.folder / "gate"

    @property
    def hold(self) -> Path:
        """While this file is there, no thread ends."""
        return self.folder / "hold"


class Account:
    """What one thread observed. Totals are by metric and labels."""

    def __init__(self) -> None:
        self.emitted = 0
        self.slowest = 0.0
        self.refused: dict[str, int] = {}
        self.series: dict[tuple[str, tuple[tuple[str, str], ...]], dict[str, Any]] = {}

    def add(self, o: Observation) -> None:
        self.emitted += 1
        if o.refused:
            self.refused[o.refused] = self.refused.get(o.refused, 0) + 1
            return
        labels = tuple(sorted((name, value) for name, value in o.labels.items() if value))
        total = self.series.setdefault((o.metric, labels), {"operation": o.operation, "count": 0, "sum": 0, "last": 0})
        total["count"] += o.weight
        total["sum"] += o.total if o.operation == "observe" else o.value
        total["last"] = o.value


def run(number: int, configs: dict[str, dict[str, Any]], options: Options) -> None:
    """The body of the process with that number."""
    _end_with_parent()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=f"producer {number}: %(message)s")
    outputs = ProcessOutputs(configs)
    # The engine creates its sinks with the first event. Here they come before, so
    # that imports are not taken for the time of an emit.
    ledger = outputs._created()["otelcol"].ledger
    reference = None
    if options.reference:
        from reference import Reference

        reference = Reference()
    accounts = [Account() for _ in range(options.threads)]
    at_gate = threading.Barrier(options.threads, action=lambda: _say_paused(number, ledger, accounts))
    threads = [
        threading.Thread(target=_observe, args=[number * options.threads + i, outputs, reference, options, a, at_gate])
        for i, a in enumerate(accounts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _drain(ledger, accounts)
    outputs.close(CLOSE_SECONDS)
    _write(number, ledger, accounts, reference, options)


def _observe(rank: int, outputs: Any, reference: Any, options: Options, account: Account, at_gate: Any) -> None:
    source = WORKLOADS[options.workload](rank, random.Random(f"{options.seed}/{rank}"))
    for step in itertools.count():
        if step % options.burst == 0:
            if step >= options.events and not options.hold.exists():
                return
            time.sleep(options.rest)
            if options.gate.exists():
                at_gate.wait(DRAIN_SECONDS)
                while options.gate.exists():
                    time.sleep(0.01)
        o = next(source)
        event = MetricEvent(time.time_ns(), o.metric, o.operation, o.value, o.labels, o.weight)
        before = time.perf_counter()
        outputs.emit(event)
        account.slowest = max(account.slowest, time.perf_counter() - before)
        account.add(o)
        if reference is not None and not o.refused:
            reference.observe(o)


def _say_paused(number: int, ledger: Any, accounts: list[Account]) -> None:
    """Called when all threads stand at the gate."""
    _drain(ledger, accounts)
    print(f"producer {number} paused", flush=True)


def _drain(ledger: Any, accounts: list[Account]) -> None:
    """Wait until the plugin has sent or dropped everything."""
    emitted = sum(account.emitted for account in accounts)
    deadline = time.monotonic() + DRAIN_SECONDS
    while ledger.sent + ledger.dropped_total() < emitted and time.monotonic() < deadline:
        time.sleep(0.01)


def _write(number: int, ledger: Any, accounts: list[Account], reference: Any, options: Options) -> None:
    refused: dict[str, int] = {}
    series: dict[Any, dict[str, Any]] = {}
    for account in accounts:
        for reason, count in account.refused.items():
            refused[reason] = refused.get(reason, 0) + count
        for key, total in account.series.items():
            whole = series.setdefault(key, {**total, "count": 0, "sum": 0})
            whole["count"] += total["count"]
            whole["sum"] += total["sum"]
            whole["last"] = total["last"]
    report = {
        "pid": os.getpid(),
        "emitted": sum(account.emitted for account in accounts),
        "sent": ledger.sent,
        "dropped": ledger.dropped_by_reason(),
        "slowest_emit_seconds": max(account.slowest for account in accounts),
        "refused": refused,
        "series": [{"metric": metric, "labels": dict(labels), **total} for (metric, labels), total in series.items()],
    }
    (options.folder / f"producer-{number}.json").write_text(json.dumps(report))
    if reference is not None:
        (options.folder / f"producer-{number}.prom").write_bytes(reference.page())


def _end_with_parent() -> None:
    """A killed engine leaves no producers behind."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
