# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""The bounded queue between the engine's threads and the delivery thread.

There is no lock on the way in: deque and the signal below are single calls into
C. So an emit may interrupt another one anywhere, and a fork can leave nothing
locked that an emit needs.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass

from .ledger import CLOSED, UNSENT, Ledger

Record = tuple[int, str, str, float, dict[str, str | None], int]
"""One event in the order of the message: timestamp_ns, metric, operation, value, labels, weight."""

ATTEND = -1
"""A wake_depth that sends every emit to look after the sink."""
_AWAKE = sys.maxsize


@dataclass(frozen=True)
class Closing:
    """The parts of the time that close was given, as moments of time.monotonic()."""

    drain_by: float
    """The queue is sent until then."""
    announce_by: float
    """The last message waits until then for room in the socket."""
    linger_by: float
    """The socket passes on until then what it has."""

    @staticmethod
    def within(seconds: float) -> Closing:
        now = time.monotonic()
        return Closing(now + 0.7 * seconds, now + 0.8 * seconds, now + 0.95 * seconds)


class Intake:
    """Invariant: every record that came in is taken exactly once.

    Either the delivery thread takes it, or, when that has ended, whoever finds it
    counts it as dropped. `finish` therefore raises its flag first and empties the
    queue then, and an emit adds its record first and looks at the flag then.
    """

    def __init__(self, queue_size: int, batch_events: int, ledger: Ledger) -> None:
        self.records: deque[Record] = deque()
        self.room = queue_size
        """Records held at most (and one more for each thread that adds at that instant); 0 once closed."""
        self.wake_depth = ATTEND
        """An emit that finds that many records looks after the sink. Only the delivery thread, or
        in its absence close, changes it."""
        self.closing: Closing | None = None
        self.finished = False
        self._ledger = ledger
        self._batch_events = min(batch_events, max(1, queue_size // 2))
        # Locked: nothing to tell. Released: the delivery thread shall look.
        self._signal = threading.Lock()
        self._signal.acquire()

    def wake(self) -> None:
        """Let the delivery thread look now."""
        if self._signal.locked():
            with contextlib.suppress(RuntimeError):  # another thread was faster
                self._signal.release()

    def wait(self, seconds: float) -> None:
        """Return after that time, or when a batch has gathered, or at close."""
        self.wake_depth = self._batch_events
        if len(self.records) < self._batch_events and self.closing is None:
            self._signal.acquire(timeout=seconds)
        self.wake_depth = _AWAKE

    def pause(self, seconds: float) -> None:
        """Return after that time, or at close, however full the queue."""
        self.wake_depth = _AWAKE
        end = time.monotonic() + seconds
        while self.closing is None and (left := end - time.monotonic()) > 0:
            self._signal.acquire(timeout=left)

    def take(self, most: int) -> list[Record]:
        """Remove and return the oldest records, at most that many."""
        taken: list[Record] = []
        try:
            while len(taken) < most:
                taken.append(self.records.popleft())
        except IndexError:
            pass
        return taken

    def close(self, closing: Closing) -> None:
        """Accept nothing more. The first call sets the times."""
        if self.closing is None:
            self.closing = closing
        self.room = 0
        self.wake()

    def finish(self) -> None:
        """Count what is left as unsent. Nothing takes records after this but `reclaim`."""
        self.finished = True
        self.wake_depth = ATTEND
        self._discard(UNSENT)

    def reclaim(self) -> None:
        """Count records that slipped in while close was at work."""
        self._discard(CLOSED)

    def _discard(self, reason: str) -> None:
        add = self._ledger.drops[reason].add
        try:
            while True:
                self.records.popleft()
                add()
        except IndexError:
            pass
