# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""The delivery thread: takes records from the queue and sends them, until close."""

from __future__ import annotations

import logging
import time

from .config import Config
from .intake import Closing, Intake, Record
from .ledger import INVALID, QUEUE_FULL, UNSENT, Ledger
from .link import PushLink
from .message import MAGIC, MAX_BYTES, UNENCODABLE, Producer, Writer
from .report import Report

logger = logging.getLogger("tokenspeed_otelcol")

# Seconds that one look at the socket may take; so long may close go unnoticed.
_POLL = 0.02
# Seconds until a socket is tried again that the system refused.
_RETRY = 1.0


class Delivery:
    """Runs in a thread of its own, and is the only one that touches the socket.

    Invariant: a record taken from the queue stays in hand until it is sent or
    counted as dropped, whatever fails in between.
    """

    def __init__(self, config: Config, producer: Producer, intake: Intake, ledger: Ledger) -> None:
        self._config = config
        self._intake = intake
        self._ledger = ledger
        self._writer = Writer(producer, config["resource"])
        self._link = PushLink(config["endpoint"])
        self._report = Report()
        self._hand: list[Record] = []
        self._told = 0  # dropped_total of the last message

    def run(self) -> None:
        while self._intake.closing is None:
            try:
                self._link.open()
                self._deliver()
            except Exception as error:
                self._complain_of(error)
                self._abandon_link()
                self._intake.pause(_RETRY)
        self._finish(self._intake.closing)

    def _deliver(self) -> None:
        """Send what comes until close begins."""
        while self._intake.closing is None:
            self._intake.wait(self._config["flush_interval_ms"] / 1000)
            while self._has_records() and self._intake.closing is None:
                self._send_some(_POLL)
                self._complain_of_drops()
            if self._ledger.dropped_total() != self._told and self._link.ready(0):
                self._send([])
            self._complain_of_drops()

    def _has_records(self) -> bool:
        return bool(self._hand or self._intake.records)

    def _send_some(self, seconds: float) -> None:
        """Send one message of events, if the socket has room for it within that time."""
        if not self._link.ready(seconds):
            return
        if not self._hand:
            self._hand = self._intake.take(self._config["batch_events"])
        if self._hand and self._send(self._hand):
            self._hand = []

    def _send(self, events: list[Record]) -> bool:
        """Send one message; tell whether the socket took it. Changes the hand when it cannot be a message."""
        dropped = self._ledger.dropped_total()
        try:
            frame = self._writer.message(self._ledger.sent, dropped, events)
        except UNENCODABLE:
            self._drop_invalid()
            return False
        if len(frame) > MAX_BYTES:
            self._make_smaller(len(frame))
            return False
        if not self._link.send([MAGIC, frame]):
            return False
        self._ledger.sent += len(events)
        self._told = dropped
        return True

    def _drop_invalid(self) -> None:
        """Drop from the hand the events that msgpack cannot hold; each costs itself alone."""
        encodable = []
        for event in self._hand:
            if problem := self._writer.problem(event):
                self._drop(event, problem)
            else:
                encodable.append(event)
        self._hand = encodable

    def _make_smaller(self, size: int) -> None:
        """Put half of the hand back in front of the queue, or drop the one event that is too large."""
        if len(self._hand) > 1:
            half = len(self._hand) // 2
            self._intake.records.extendleft(reversed(self._hand[half:]))
            self._hand = self._hand[:half]
        else:
            self._drop(self._hand[0], f"{size} bytes, a message has at most {MAX_BYTES}")
            self._hand = []

    def _drop(self, event: Record, problem: str) -> None:
        self._ledger.drops[INVALID].add()
        self._ledger.last_invalid = f"{event[1]!r:.200}: {problem:.200}"

    def _finish(self, closing: Closing) -> None:
        """Send what the time allows, count the rest, and say so once."""
        try:
            while self._has_records() and (left := closing.drain_by - time.monotonic()) > 0:
                self._send_some(min(left, _POLL))
        except Exception as error:
            self._complain_of(error)
            self._abandon_link()
        for _ in self._hand:
            self._ledger.drops[UNSENT].add()
        self._hand = []
        self._intake.finish()
        try:
            if self._link.ready(closing.announce_by - time.monotonic()):
                self._send([])
            self._link.close(closing.linger_by - time.monotonic())
        except Exception as error:
            self._complain_of(error)
            self._abandon_link()
        self._complain_of_drops()
        log_closed(self._ledger)

    def _abandon_link(self) -> None:
        try:
            self._link.close(0)
        except Exception as error:
            self._complain_of(error)

    def _complain_of(self, error: Exception) -> None:
        text = f"{type(error).__name__}: {error} (endpoint {self._config['endpoint']}; tried again)"
        for line in self._report.fault(time.monotonic(), "cannot deliver", text):
            logger.error("otelcol metric output: %s", line)

    def _complain_of_drops(self) -> None:
        hints = {
            QUEUE_FULL: f"the queue of {self._config['queue_size']} events is full, the newest are dropped; "
            f"does a collector listen at {self._config['endpoint']}, and keep up?",
            INVALID: f"the latest is metric {self._ledger.last_invalid}",
        }
        for line in self._report.drops(time.monotonic(), self._ledger.dropped_by_reason(), hints):
            logger.warning("otelcol metric output: %s", line)


def log_closed(ledger: Ledger) -> None:
    """Say, once a sink, what became of all events."""
    logger.info("otelcol metric output closed: %s", ledger.summary())
