# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""The same observations in prometheus_client: what a user of the engine has without the plugin."""

from __future__ import annotations

import threading

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from workload import BOUNDS, Observation

KINDS = {"set": Gauge, "inc": Counter, "observe": Histogram}


class Reference:
    """The registry of one process, for all its threads."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._lock = threading.Lock()
        self._families: dict[str, Gauge | Counter | Histogram] = {}

    def observe(self, o: Observation) -> None:
        with self._lock:  # a weighted observation is two steps, and must not be seen between
            child = self._family(o).labels(*o.labels.values())
            if isinstance(child, Gauge):
                child.set(o.value)
            elif isinstance(child, Counter):
                child.inc(o.value)
            else:
                _observe_weighted(child, o.value, o.total, o.weight)

    def page(self) -> bytes:
        return generate_latest(self._registry)

    def _family(self, o: Observation) -> Gauge | Counter | Histogram:
        family = self._families.get(o.metric)
        if family is None:
            bounds = {"buckets": BOUNDS[o.metric]} if o.operation == "observe" else {}
            kind = KINDS[o.operation]
            family = kind(o.metric, o.metric, list(o.labels), registry=self._registry, **bounds)
            self._families[o.metric] = family
        return family


def _observe_weighted(histogram: Histogram, value: float, total: float, weight: int) -> None:
    """The library takes no weights; engines reach into it for that, and so does this."""
    histogram._sum.inc(total)
    for bound, bucket in zip(histogram._upper_bounds, histogram._buckets, strict=True):
        if value <= bound:
            bucket.inc(weight)
            break
