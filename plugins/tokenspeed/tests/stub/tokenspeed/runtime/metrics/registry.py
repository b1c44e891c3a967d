# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""The names of the outputs that plugins have registered in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tokenspeed.runtime.plugins import record_external

from .events import MetricConfig, MetricEventSink, MetricNodeSession

METRIC_REPORTER_API_VERSION = 1
RESERVED = "prometheus"


@dataclass(frozen=True)
class Reporter:
    validate: Callable[[MetricConfig], Mapping[str, object]]
    create_sink: Callable[[MetricConfig], MetricEventSink]
    start_node: Callable[[MetricConfig], MetricNodeSession] | None


reporters: dict[str, Reporter] = {}


def register_metric_reporter(
    name: str,
    *,
    validate: Callable[[MetricConfig], Mapping[str, object]],
    create_sink: Callable[[MetricConfig], MetricEventSink],
    start_node: Callable[[MetricConfig], MetricNodeSession] | None,
    override: bool,
) -> None:
    """Declare an output. The plugin's other registrations decide whether it stays."""
    if name == RESERVED:
        raise ValueError(f"metric reporter name {name!r} is reserved")
    previous = reporters.get(name)
    if previous is not None and not override:
        raise ValueError(f"metric reporter {name!r} is registered already; override=True replaces it")
    reporters[name] = Reporter(validate, create_sink, start_node)

    def undo() -> None:
        if previous is None:
            del reporters[name]
        else:
            reporters[name] = previous

    record_external("metric_reporter", name, undo)
