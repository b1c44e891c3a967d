# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""The metric output `otelcol` of TokenSpeed: events to an OpenTelemetry Collector.

    collector threads of the engine
      │ emit(event)            sink.py      copies the event, never waits
      ▼
    bounded queue              intake.py    every record is taken exactly once
      │ delivery thread        delivery.py  batches, back-off, the end
      ▼
    message                    message.py   event batches as msgpack (pure)
      │ ZMQ PUSH               link.py      connects to the receiver, for ever
      ▼
    receiver `metric_event`

What is lost on the way out is counted in ledger.py and told, at a bounded rate,
by report.py. The engine finds `register` by entry point, and calls it in every
process: it declares two factories and imports nothing that costs anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .config import validate

if TYPE_CHECKING:
    from .sink import Sink

__all__ = ["NAME", "create_sink", "register", "validate"]

NAME = "otelcol"
"""The name that `--metrics-reporters` and the configuration file use."""

API_VERSION = 1
"""The version of the metric reporter API that this package is written for."""


def register() -> None:
    """Declare the output to the engine; called once a process.

    Raises RuntimeError when the engine has no metric reporter API, or another
    version of it.
    """
    try:
        from tokenspeed.runtime.metrics.registry import (
            METRIC_REPORTER_API_VERSION,
            register_metric_reporter,
        )
    except ImportError as error:
        raise RuntimeError(
            "tokenspeed-otelcol: this TokenSpeed has no metric reporter API "
            f"(tokenspeed.runtime.metrics.registry: {error}); version {API_VERSION} of it is needed"
        ) from error

    if METRIC_REPORTER_API_VERSION != API_VERSION:
        raise RuntimeError(
            f"tokenspeed-otelcol: METRIC_REPORTER_API_VERSION is {METRIC_REPORTER_API_VERSION!r}, "
            f"must be {API_VERSION}; install the release of tokenspeed-otelcol made for this TokenSpeed"
        )
    register_metric_reporter(
        NAME,
        validate=validate,
        create_sink=create_sink,
        start_node=None,
        override=False,
    )


def create_sink(producer_config: Mapping[str, object]) -> Sink:
    """Create the sink of this process from a configuration as `validate` takes it.

    The configuration is read, not kept. Imports pyzmq and msgspec; thread and
    socket wait for the first event. Raises ValueError for a bad configuration.
    """
    # Imported here and not at the first event: a fork while the delivery thread
    # imports would leave the child with half a module.
    from .sink import Sink

    return Sink(validate(producer_config))
