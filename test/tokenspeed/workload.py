# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""What the collectors of an engine observe: names, labels and bounds of TokenSpeed.

A workload is made for one thread, from a random generator of its own, and yields
observations without an end. Each thread is a data-parallel rank, so that every
gauge has one writer; the request metrics are shared by the threads of a process,
and have the same labels in every process.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

BOUNDS: dict[str, list[float]] = {
    "tokenspeed:iteration_tokens_total": [0, *(2**n for n in range(14))],
    "tokenspeed:time_to_first_token_seconds": [
        0.1, 0.3, 0.5, 0.7, 0.9, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 120, 160,
    ],
    "tokenspeed:request_time_per_output_token_seconds": [
        0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1, 2,
    ],
    "tokenspeed:inter_token_latency_seconds": [
        0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.05, 0.075,
        0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2,
    ],
    "tokenspeed:e2e_request_latency_seconds": [
        0.1, 0.2, 0.4, 0.8, 1, 2, 5, 10, 20, 40, 60, 80, 100, 150, 200, 250, 300, 350, 500, 1000,
    ],
}  # fmt: skip
"""Upper bounds of the histograms on the engine's own page."""

ENGINE_GAUGES = ("tokenspeed:num_requests_running", "tokenspeed:num_requests_waiting")
USAGE = "tokenspeed:kv_cache_usage_perc"
ENGINE_COUNTERS = (
    "tokenspeed:spec_decode_num_accepted_tokens_total",
    "tokenspeed:spec_decode_num_draft_tokens_total",
    "tokenspeed:spec_decode_num_drafts_total",
)
SECONDS_COUNTER = "tokenspeed:jit_serving_compile_seconds_total"
REQUEST_COUNTERS = (
    "tokenspeed:prompt_tokens_total",
    "tokenspeed:generation_tokens_total",
    "tokenspeed:prefix_cache_hits_total",
    "tokenspeed:num_requests_total",
    "tokenspeed:request_success_total",
)
ITERATION = "tokenspeed:iteration_tokens_total"
LATENCY = "tokenspeed:inter_token_latency_seconds"
REQUEST_HISTOGRAMS = (
    "tokenspeed:time_to_first_token_seconds",
    "tokenspeed:request_time_per_output_token_seconds",
)
NEGATIVE = "tokenspeed:e2e_request_latency_seconds"
"""Some of its values are negative, as after a step of the wall clock."""


@dataclass(frozen=True, slots=True)
class Observation:
    metric: str
    operation: str
    value: float
    labels: dict[str, str | None]
    weight: int = 1
    total: float = 0.0
    """value * weight as it was measured: the interval that `weight` tokens share."""
    refused: str = ""
    """Why the receiver must reject it; empty for one that counts."""


Workload = Callable[[int, random.Random], Iterator[Observation]]


def serving(rank: int, chance: random.Random) -> Iterator[Observation]:
    """What an engine that serves observes, odd values included."""
    engine: dict[str, str | None] = {"model_name": "llama", "app_key": "", "dp_rank": str(rank)}
    request: dict[str, str | None] = {"model_name": "llama", "app_key": None}
    while True:
        for gauge in ENGINE_GAUGES:
            yield Observation(gauge, "set", chance.randrange(4), engine)
        yield Observation(USAGE, "set", chance.randrange(1000) / 999, engine)
        yield _observe(ITERATION, chance.choice([1, 2, 3, 64, 65, 8192, 9000, 20000]), engine)
        for counter in ENGINE_COUNTERS:
            yield Observation(counter, "inc", chance.randrange(5), engine)
        yield Observation(SECONDS_COUNTER, "inc", chance.random(), engine)
        for _ in range(3):
            tokens = chance.randrange(1, 9)
            interval = _value(LATENCY, chance) * tokens
            yield Observation(LATENCY, "observe", interval / tokens, request, tokens, interval)
        for histogram in REQUEST_HISTOGRAMS:
            yield _observe(histogram, _value(histogram, chance), request)
        yield _observe(NEGATIVE, chance.choice([-0.25, 0.0, 0.1, 7.5, 2000.0]), request)
        for counter in REQUEST_COUNTERS:
            yield Observation(counter, "inc", chance.randrange(500), request)
        if chance.random() < 0.05:
            yield _refused(chance, request)


def numbered(rank: int, chance: random.Random) -> Iterator[Observation]:
    """Events that can be told apart where they come out.

    Of four, two are gauge values that no other event of the rank has, one is an
    increment of 1, one an observation with weight 3.
    """
    labels: dict[str, str | None] = {"model_name": "llama", "dp_rank": str(rank)}
    number = 0
    while True:
        for _ in range(2):
            yield Observation(ENGINE_GAUGES[0], "set", number, labels)
            number += 1
        yield Observation(REQUEST_COUNTERS[3], "inc", 1, labels)
        yield Observation(LATENCY, "observe", 0.01, labels, 3, 0.03)


WORKLOADS: dict[str, Workload] = {"serving": serving, "numbered": numbered}


def _observe(metric: str, value: float, labels: dict[str, str | None]) -> Observation:
    return Observation(metric, "observe", value, labels, 1, value)


def _value(metric: str, chance: random.Random) -> float:
    """Return a bound (it belongs to its bucket), something between, or more than the last."""
    bounds = BOUNDS[metric]
    bound = chance.choice(bounds)
    return chance.choice([bound, bound * chance.uniform(0.3, 1.7), bounds[-1] * 3])


def _refused(chance: random.Random, labels: dict[str, str | None]) -> Observation:
    return chance.choice(
        [
            Observation(LATENCY, "observe", math.nan, labels, refused="not_finite"),
            Observation(LATENCY, "observe", 0.01, labels, weight=-1, refused="weight"),
            Observation(REQUEST_COUNTERS[0], "inc", -1, labels, refused="negative_increment"),
        ]
    )
