# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""The sink that the engine's collectors of one process share."""

from __future__ import annotations

import atexit
import logging
import os
import socket
import threading
import time
import weakref
from collections.abc import Mapping
from multiprocessing.util import Finalize
from typing import Protocol

from .config import Config
from .delivery import Delivery, log_closed
from .intake import Closing, Intake
from .ledger import CLOSED, INVALID, QUEUE_FULL, Ledger
from .message import Producer
from .report import Report

logger = logging.getLogger("tokenspeed_otelcol")

DEFAULT_CLOSE_SECONDS = 1.0
_LONGEST_CLOSE_SECONDS = 86_400.0
# Seconds until a thread is tried again that the system refused.
_RETRY = 1.0
# At the end of a child of multiprocessing this comes after pools, queues and children.
_LAST = -100


class Event(Protocol):
    """What is read of an event of the engine, by name; it is left as it is."""

    @property
    def timestamp_ns(self) -> int: ...
    @property
    def metric(self) -> str: ...
    @property
    def operation(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def labels(self) -> Mapping[str, str | None]: ...
    @property
    def weight(self) -> int: ...


class Sink:
    """Takes events from any thread and delivers them in the background.

    Thread and socket come with the first event, in whatever process that is: after
    a fork the child starts anew, as a producer of its own with nothing queued, and
    what was queued is the parent's to deliver.
    """

    def __init__(self, config: Config) -> None:
        """Keep `config`, which the caller leaves as it is from now on."""
        self._config = config
        self._begin()
        _sinks.add(self)
        # An engine process that ends without closing its sinks should not lose the
        # last flush interval.
        atexit.register(self.close)

    def _begin(self) -> None:
        self.ledger = Ledger()
        self._report = Report()
        self._intake = Intake(self._config["queue_size"], self._config["batch_events"], self.ledger)
        self._producer = Producer(socket.gethostname(), os.getpid(), time.time_ns())
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._start_after = 0.0
        self._at_end_of_child: Finalize[None] | None = None

    def emit(self, event: Event) -> None:
        """Queue a copy of `event`, or drop and count it. Never waits, never raises."""
        intake = self._intake
        try:
            depth = len(intake.records)
            if depth < intake.room:
                intake.records.append(
                    (
                        event.timestamp_ns,
                        event.metric,
                        event.operation,
                        event.value,
                        dict(event.labels),
                        event.weight,
                    )
                )
                if depth >= intake.wake_depth:
                    self._attend(intake)
            else:
                self._refuse(intake)
        except Exception as error:
            self._reject(event, error)

    def close(self, timeout: float | None = None) -> None:
        """Accept nothing more, deliver what is queued, and end the delivery.

        `timeout` is in seconds, None means 1.0, a negative one 0; the call returns
        within it. What could not be sent by then is counted as dropped. Further calls
        wait for the first one's end, each within its own timeout. May be called from
        any thread.
        """
        seconds = DEFAULT_CLOSE_SECONDS if timeout is None else float(timeout)
        seconds = min(seconds, _LONGEST_CLOSE_SECONDS) if seconds > 0 else 0.0
        deadline = time.monotonic() + seconds
        intake = self._intake
        intake.close(Closing.within(seconds))
        if self._starting.acquire(timeout=seconds):
            # A thread that is being started now sees that it has to end.
            try:
                if self._thread is None and not intake.finished:
                    intake.finish()
                    log_closed(self.ledger)
            finally:
                self._starting.release()
        if self._thread is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        atexit.unregister(self.close)
        if self._at_end_of_child is not None:
            self._at_end_of_child.cancel()

    def _attend(self, intake: Intake) -> None:
        """Do what an emit has to do beside adding its record. Never raises."""
        try:
            if intake.finished:
                intake.reclaim()
            elif self._thread is None:
                self._start(intake)
            else:
                intake.wake()
        except Exception as error:
            self._complain_of(error)

    def _start(self, intake: Intake) -> None:
        """Start the delivery thread, unless another emit does or the last try is too recent."""
        if not self._starting.acquire(blocking=False):
            return
        try:
            now = time.monotonic()
            if self._thread is not None or intake.finished or now < self._start_after:
                return
            self._start_after = now + _RETRY
            if self._at_end_of_child is None:
                # Forked children of multiprocessing run this at their end, and nothing of
                # atexit; they forget at their start what their parent has registered.
                self._at_end_of_child = Finalize(None, self.close, exitpriority=_LAST)
            delivery = Delivery(self._config, self._producer, intake, self.ledger)
            thread = threading.Thread(target=delivery.run, name="tokenspeed-otelcol", daemon=True)
            thread.start()
            self._thread = thread
        finally:
            self._starting.release()

    def _refuse(self, intake: Intake) -> None:
        if intake.closing is not None:
            self.ledger.drops[CLOSED].add()
            return
        self.ledger.drops[QUEUE_FULL].add()
        if self._thread is None:
            self._attend(intake)

    def _reject(self, event: Event, error: Exception) -> None:
        self.ledger.drops[INVALID].add()
        try:
            metric = getattr(event, "metric", None)
            self.ledger.last_invalid = f"{metric!r:.200}: {type(error).__name__}: {error!s:.200}"
        except Exception:
            self.ledger.last_invalid = "of an event that cannot be shown"

    def _complain_of(self, error: Exception) -> None:
        text = f"{type(error).__name__}: {error} (tried again)"
        for line in self._report.fault(time.monotonic(), "cannot start the delivery thread", text):
            logger.error("otelcol metric output: %s", line)

    def _begin_after_fork(self) -> None:
        was_closed = self._intake.closing is not None
        self._begin()
        if was_closed:
            self._intake.close(Closing.within(0))
            self._intake.finish()


_sinks: weakref.WeakSet[Sink] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for sink in list(_sinks):
        sink._begin_after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
