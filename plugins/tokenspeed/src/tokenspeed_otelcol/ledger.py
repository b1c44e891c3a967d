# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""What became of every event of a process: sent, or dropped for a reason."""

from __future__ import annotations

import itertools
import threading

QUEUE_FULL = "queue_full"
"""Came when the queue was full."""
INVALID = "invalid"
"""Lacks a field, or has one that msgpack cannot hold, or is too large."""
CLOSED = "closed"
"""Came after close began."""
UNSENT = "unsent"
"""Was still in the queue when the time that close was given was over."""

REASONS = (QUEUE_FULL, INVALID, CLOSED, UNSENT)


class Tally:
    """A number that any thread raises by one without a lock, and none is lost.

    A lock would not do: an emit may interrupt another one of the same thread, in
    a signal handler or a destructor. The step of itertools.count is one call into
    C, so it is never halved. Reading takes a step too, and is subtracted.
    """

    def __init__(self) -> None:
        self.add = itertools.count().__next__
        """Raise the number by one; what it returns means nothing."""
        self._reads = 0
        self._reading = threading.Lock()

    def value(self) -> int:
        """Return the number. Not for use inside emit: it takes a lock."""
        with self._reading:
            steps = self.add() - self._reads
            self._reads += 1
        return steps


class Ledger:
    """Invariant: emitted = sent + dropped, when the queue is empty.

    One a process; it never falls.
    """

    def __init__(self) -> None:
        self.sent = 0
        """Events handed to the socket. Only the delivery thread changes it."""
        self.drops = {reason: Tally() for reason in REASONS}
        self.last_invalid = ""
        """The latest event dropped as invalid, and why, in words."""

    def dropped_by_reason(self) -> dict[str, int]:
        return {reason: tally.value() for reason, tally in self.drops.items()}

    def dropped_total(self) -> int:
        return sum(self.dropped_by_reason().values())

    def summary(self) -> str:
        """Return `sent 7, dropped 3 (queue_full 2, closed 1)`."""
        dropped = self.dropped_by_reason()
        reasons = ", ".join(f"{reason} {count}" for reason, count in dropped.items() if count)
        return f"sent {self.sent}, dropped {sum(dropped.values())}" + (f" ({reasons})" if reasons else "")
