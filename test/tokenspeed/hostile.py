# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""A neighbour of the engine that sends garbage until it is killed.

It says `pushing` when each kind of garbage was sent once. It takes nobody's name:
a producer that does is beyond what the receiver can tell.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import sys
import time
from collections.abc import Callable

import msgspec
import zmq

MAGIC = b"tsme1"
chance = random.Random(1)


def main(endpoint: str) -> None:
    context = zmq.Context()
    push = context.socket(zmq.PUSH)
    push.setsockopt(zmq.LINGER, 0)
    push.setsockopt(zmq.SNDHWM, 8)
    push.connect(endpoint)
    host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
    kinds: list[Callable[[], None]] = [
        lambda: frames(push, chance.randbytes(20)),
        lambda: frames(push, b"tsme2", message()),
        lambda: frames(push, MAGIC, chance.randbytes(chance.randrange(2000))),
        lambda: frames(push, MAGIC, message()[: chance.randrange(1, 40)]),
        lambda: frames(push, MAGIC, message(events=[[1, 2], None, "x", {}, [], [1, "m", "set", "1", {}, 1]])),
        lambda: frames(push, MAGIC, message(seq=-1)),
        lambda: frames(push, MAGIC, b"\x91" * 100_000),
        lambda: frames(push, MAGIC, b"\xdf\xff\xff\xff\xff"),
        lambda: frames(push, *[b""] * 100),
        lambda: frames(push, MAGIC, bytes(9 << 20)),
        lambda: raw(host, int(port), chance.randbytes(200)),
        lambda: raw(host, int(port), b"GET / HTTP/1.1\r\n\r\n"),
        lambda: raw(host, int(port), greeting() + chance.randbytes(200)),
        lambda: raw(host, int(port), greeting() + ready(b"PUSH") + b"\x02" + b"\xff" * 8),
        lambda: raw(host, int(port), greeting() + ready(b"PUSH") + b"\x01\x05tsme1\x00\xff" + b"x"),
        lambda: raw(host, int(port), greeting() + ready(b"SUB")),
    ]
    for kind in kinds:
        kind()
        time.sleep(0.05)
    print("pushing", flush=True)
    while True:
        chance.choice(kinds)()
        time.sleep(0.002)


def message(**changes: object) -> bytes:
    producer = {"host": "neighbour", "pid": os.getpid(), "start_ns": 1}
    whole = {"v": 1, "producer": producer, "seq": 0, "dropped_total": 0, "resource": {}, "events": []}
    return msgspec.msgpack.encode({**whole, **changes})


def frames(push: zmq.Socket[bytes], *parts: bytes) -> None:
    # A connection that was closed for the last message may not be there again yet.
    if push.poll(500, zmq.POLLOUT):
        push.send_multipart(parts, zmq.NOBLOCK)


def raw(host: str, port: int, data: bytes) -> None:
    with contextlib.suppress(OSError), socket.create_connection((host, port), 1) as connection:
        connection.sendall(data)
        connection.settimeout(0.05)
        connection.recv(1000)


def greeting() -> bytes:
    """What a peer of ZMTP 3.0 without security begins with."""
    return b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)


def ready(kind: bytes) -> bytes:
    name = b"Socket-Type"
    body = b"\x05READY" + bytes([len(name)]) + name + len(kind).to_bytes(4, "big") + kind
    return b"\x04" + bytes([len(body)]) + body


if __name__ == "__main__":
    main(sys.argv[1])
