# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""The message that the `metric_event` receiver reads: two frames.

    b"tsme1"
    msgpack {v: 1, producer: {host, pid, start_ns}, seq, dropped_total, resource: {…},
             events: [[timestamp_ns, metric, operation, value, labels, weight], …]}

`seq` is the number of events handed to the socket before this message: the first
has 0, the next that plus its number of events. A receiver that finds a larger one
than it expects knows how many events were lost on the way. `dropped_total` counts
the events that never came to the socket; it does not fall. A message may have no
events: it tells the two numbers only.

Pure: values in, bytes out.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import msgspec

from .config import Resource
from .intake import Record

MAGIC = b"tsme1"
"""The first frame; its digit is the version of the format."""

MAX_BYTES = 1 << 20
"""The most a message may have; an eighth of what the receiver takes by default."""

UNENCODABLE = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
"""What `Writer.message` raises when msgpack cannot hold an event."""


@dataclass(frozen=True)
class Producer:
    """Who sends; no two sinks share it."""

    host: str
    pid: int
    start_ns: int
    """When the sink came to be in this process, Unix nanoseconds."""


class Writer:
    """Writes the messages of one producer. Keeps `resource`; the caller leaves it as it is."""

    def __init__(self, producer: Producer, resource: Resource) -> None:
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
        self._producer = asdict(producer)
        self._resource = resource

    def message(self, seq: int, dropped_total: int, events: Sequence[Record]) -> bytes:
        """Return the second frame. Raises one of UNENCODABLE when it cannot hold an event."""
        return self._encoder.encode(
            {
                "v": 1,
                "producer": self._producer,
                "seq": seq,
                "dropped_total": dropped_total,
                "resource": self._resource,
                "events": events,
            }
        )

    def problem(self, event: Record) -> str:
        """Return why msgpack cannot hold this event, or "" when it can."""
        try:
            self._encoder.encode(event)
        except UNENCODABLE as error:
            return f"{type(error).__name__}: {error}"
        return ""


def _plain(value: object) -> object:
    """Return the number or text that a subclass of it, or a scalar of an array library, stands for."""
    if isinstance(value, str):
        return str.__str__(value)
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return float(value)  # type: ignore[arg-type]
