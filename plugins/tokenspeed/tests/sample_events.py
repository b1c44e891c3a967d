# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Events of every shape that an engine may give them, and threads that emit them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from tokenspeed_otelcol.sink import Sink

LABELS: Mapping[str, str | None] = {"model_name": "llama", "app_key": "", "dp_rank": "0"}


@dataclass(frozen=True, slots=True)
class Event:
    timestamp_ns: Any = 1_700_000_000_000_000_000
    metric: Any = "tokenspeed:num_requests_running"
    operation: Any = "set"
    value: Any = 1
    labels: Any = field(default_factory=lambda: LABELS)
    weight: Any = 1


class NamedTupleEvent(NamedTuple):
    weight: Any = 1
    labels: Any = LABELS
    value: Any = 1
    operation: Any = "set"
    metric: Any = "tokenspeed:num_requests_running"
    timestamp_ns: Any = 1_700_000_000_000_000_000


class StructEvent(msgspec.Struct, frozen=True):
    timestamp_ns: Any = 1_700_000_000_000_000_000
    metric: Any = "tokenspeed:num_requests_running"
    operation: Any = "set"
    value: Any = 1
    labels: Any = msgspec.field(default_factory=lambda: LABELS)
    weight: Any = 1


def emit_from_threads(
    sink: Sink, threads: int, each: int, pause: Callable[[int], None] = lambda emitted: None
) -> float:
    """Emit events whose values are 0, 1, 2, …, none twice. Calls `pause` after each.

    Returns the seconds that the slowest emit took.
    """
    slowest = [0.0] * threads

    def run(number: int) -> None:
        for step in range(each):
            event = Event(value=number * each + step)
            before = time.perf_counter()
            sink.emit(event)
            slowest[number] = max(slowest[number], time.perf_counter() - before)
            pause(step)

    running = [threading.Thread(target=run, args=[number]) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return max(slowest)
