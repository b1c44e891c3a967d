# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Selection of outputs at startup, their sinks in each process, and their end."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from tokenspeed.runtime.plugins import ensure_loaded

from .events import MetricConfig, MetricEvent, MetricEventSink, MetricNodeSession
from .registry import RESERVED, Reporter, reporters

logger = logging.getLogger(__name__)
T = TypeVar("T")


def read_config(text: str) -> dict[str, MetricConfig]:
    """Return the configuration file's object; a key that comes twice is an error."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        seen = dict(pairs)
        if len(seen) < len(pairs):
            raise ValueError(f"duplicate key in {[key for key, _ in pairs]}")
        return seen

    config = json.loads(text, object_pairs_hook=unique)
    if not isinstance(config, dict):
        raise ValueError("the configuration must map reporter names to settings")
    return config


class Launcher:
    """Starts the outputs of a node. Holds what they share, and its own sinks."""

    def __init__(
        self,
        *,
        enable_metrics: bool = True,
        reporter_names: Sequence[str] = (RESERVED,),
        config_text: str = "{}",
    ) -> None:
        self._sessions: list[MetricNodeSession] = []
        self.producer_configs: dict[str, MetricConfig] = {}
        self._sinks: ProcessOutputs | None = None
        if not enable_metrics:
            return
        ensure_loaded()
        selected = list(dict.fromkeys(name for name in reporter_names if name != RESERVED))
        unknown = [name for name in selected if name not in reporters]
        if unknown:
            raise ValueError(f"unknown metric reporters: {unknown}")
        config = read_config(config_text)
        unselected = [name for name in config if name not in selected]
        if unselected:
            raise ValueError(f"configuration for unselected metric reporters: {unselected}")
        normalized = {
            name: json_copy(dict(reporters[name].validate(json_copy(config.get(name, {}))))) for name in selected
        }
        for name in selected:
            start_node = reporters[name].start_node
            if start_node is None:
                self.producer_configs[name] = normalized[name]
                continue
            session = start_node(normalized[name])
            self._sessions.append(session)
            self.producer_configs[name] = json_copy(session.producer_config)

    @property
    def sinks(self) -> ProcessOutputs:
        """The launcher's own outputs, for it is a producer too."""
        if self._sinks is None:
            self._sinks = ProcessOutputs(self.producer_configs)
        return self._sinks

    def close(self, budget: float) -> None:
        """Close the local sinks, then what the node shares, all within the budget."""
        deadline = time.monotonic() + budget
        closers = [] if self._sinks is None else [self._sinks.close]
        close_all([*closers, *(session.close for session in self._sessions)], deadline)


class ProcessOutputs:
    """The outputs of one producer process; its collectors share one sink for each."""

    def __init__(self, producer_configs: dict[str, MetricConfig]) -> None:
        self._configs = json_copy(producer_configs)
        self._lock = threading.Lock()
        self._sinks: dict[str, MetricEventSink] | None = None
        self._disabled: set[str] = set()

    def emit(self, event: MetricEvent) -> None:
        for name, sink in self._created().items():
            if name in self._disabled:
                continue
            try:
                sink.emit(event)
            except Exception:
                # Kept for shutdown, and never built anew.
                self._disabled.add(name)
                logger.exception("metric output %s is disabled", name)

    def close(self, budget: float) -> None:
        if self._sinks is not None:
            close_all([sink.close for sink in self._sinks.values()], time.monotonic() + budget)

    def _created(self) -> dict[str, MetricEventSink]:
        with self._lock:
            if self._sinks is None:
                ensure_loaded()
                self._sinks = {}
                for name, config in self._configs.items():
                    reporter: Reporter = reporters[name]
                    self._sinks[name] = reporter.create_sink(json_copy(config))
            return self._sinks


def close_all(closers: Sequence[Callable[[float], None]], deadline: float) -> None:
    """Call each with what is left of the time; one that raises does not skip the others."""
    for close in closers:
        try:
            close(max(0.0, deadline - time.monotonic()))
        except Exception:
            logger.exception("an output failed to close")


def json_copy(value: T) -> T:
    """Return a copy that shares nothing. Raises TypeError or ValueError for what is not JSON."""
    return json.loads(json.dumps(value, allow_nan=False))  # type: ignore[no-any-return]
