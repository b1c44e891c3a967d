# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""A PULL peer that plays the collector, and can be stopped, killed and started again.

Run as a program it binds the endpoint and writes every message it has accepted to
a journal, in one write: what stands there has arrived, also after a SIGKILL. It
reads messages as strictly as the format is written, and ends with an error at the
first that is not so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import zmq


class ProducerOnWire(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    host: str
    pid: int
    start_ns: int


class Message(msgspec.Struct, forbid_unknown_fields=True):
    v: int
    producer: ProducerOnWire
    seq: int
    dropped_total: int
    resource: dict[str, Any]
    events: list[list[Any]]


FIELDS = ["v", "producer", "seq", "dropped_total", "resource", "events"]
_decoder = msgspec.msgpack.Decoder(Message)


def read_message(frames: list[bytes]) -> Message:
    """Read the two frames of a message. Raises ValueError when they are not one."""
    if len(frames) != 2 or frames[0] != b"tsme1":
        raise ValueError(f"{len(frames)} frames, the first {frames[0]!r}")
    message = _decoder.decode(frames[1])
    keys = list(msgspec.msgpack.decode(frames[1]))
    if message.v != 1 or keys != FIELDS or any(len(event) != 6 for event in message.events):
        raise ValueError(f"version {message.v}, keys {keys}")
    return message


class Entry(msgspec.Struct, array_like=True):
    """What the journal keeps of a message; the tests make every value unique."""

    producer: ProducerOnWire
    seq: int
    dropped_total: int
    values: list[float]


@dataclass
class Account:
    """What the messages of one producer say, over all collectors that it met."""

    accepted: int
    """Events that arrived."""
    lost: int
    """Events that the gaps of seq prove lost, up to the last message."""
    seq_end: int
    """seq of the last message + its events."""
    dropped_total: int
    """dropped_total of the last message."""
    values: list[float]


def account(entries: list[Entry]) -> Account:
    """Add up the messages of one producer. Raises ValueError when seq or dropped_total goes back."""
    whole = Account(0, 0, 0, 0, [])
    for entry in entries:
        if entry.seq < whole.seq_end or entry.dropped_total < whole.dropped_total:
            raise ValueError(f"after {whole.seq_end} and {whole.dropped_total} dropped came {entry}")
        whole.lost += entry.seq - whole.seq_end
        whole.accepted += len(entry.values)
        whole.seq_end = entry.seq + len(entry.values)
        whole.dropped_total = entry.dropped_total
        whole.values.extend(entry.values)
    return whole


class Collector:
    """Runs this file as a process. Times are in seconds."""

    def __init__(self, endpoint: str, directory: Path) -> None:
        self.endpoint = endpoint
        self._journal = directory / "journal"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Collector:
        self._process = subprocess.Popen(
            [sys.executable, __file__, self.endpoint, str(self._journal)], stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"bound\n"
        return self

    def kill(self) -> None:
        assert self._process is not None and self._process.poll() is None
        self._process.kill()
        self._process.communicate()
        self._process = None

    def stand_still(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def entries(self) -> list[Entry]:
        """Return what all runs of this collector accepted, oldest first."""
        journal = self._journal.read_bytes() if self._journal.exists() else b""
        entries, start = [], 0
        while start < len(journal):
            end = start + 4 + int.from_bytes(journal[start : start + 4], "big")
            if end > len(journal):
                break  # killed in the middle of a write
            entries.append(msgspec.msgpack.decode(journal[start + 4 : end], type=Entry))
            start = end
        return entries

    def account(self) -> Account:
        return account(self.entries())

    def await_end(self, sent: int, dropped: int, within: float = 10) -> Account:
        """Wait for the message that tells these final numbers, and return all that came."""
        deadline = time.monotonic() + within
        while True:
            whole = self.account()
            if (whole.seq_end, whole.dropped_total) == (sent, dropped):
                return whole
            assert self._process is not None and self._process.poll() is None, "the collector has died"
            assert time.monotonic() < deadline, f"sent {sent}, dropped {dropped}, {whole.seq_end=}"
            time.sleep(0.02)

    def __enter__(self) -> Collector:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()


def main(endpoint: str, journal_path: str) -> None:
    journal = os.open(journal_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    socket = zmq.Context().socket(zmq.PULL)
    socket.setsockopt(zmq.IPV6, 1)
    deadline = time.monotonic() + 5
    while True:
        try:
            socket.bind(endpoint)
            break
        except zmq.ZMQError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    print("bound", flush=True)
    while True:
        message = read_message(socket.recv_multipart())
        values = [event[3] for event in message.events]
        entry = msgspec.msgpack.encode(Entry(message.producer, message.seq, message.dropped_total, values))
        os.write(journal, len(entry).to_bytes(4, "big") + entry)


if __name__ == "__main__":
    main(*sys.argv[1:])
