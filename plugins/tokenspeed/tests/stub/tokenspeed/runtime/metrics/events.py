# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""What passes between the engine and an output plugin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

MetricConfig = dict[str, Any]
"""A JSON object: the settings of one output."""


@dataclass(frozen=True, slots=True)
class MetricEvent:
    """One observation before any reporter aggregates it."""

    timestamp_ns: int
    metric: str
    operation: Literal["inc", "set", "observe"]
    value: float
    labels: Mapping[str, str | None]
    weight: int = 1


class MetricEventSink(Protocol):
    def emit(self, event: MetricEvent) -> None: ...
    def close(self, timeout: float) -> None: ...


class MetricNodeSession(Protocol):
    @property
    def producer_config(self) -> MetricConfig: ...
    def close(self, timeout: float) -> None: ...
