# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Publish forward passes as the engines do: libzmq, msgspec, three frames.

Binds an endpoint a rank, waits until each has a subscriber, sends, and prints
one line for each thing that happened ("bound", "subscribed", "sent"). It then
keeps the sockets open, as an engine would, until standard input ends.

With --dump it writes what it sends, before it sends it, one JSON object a line:
the rank, the sequence and the `fpm` object that the trace row must have; of a
bad message (--bad-every) the reason for which a reader must not pass it on.
"""

import argparse
import itertools
import random
import sys
import time

import msgspec
import zmq

import rust_json
from fpm_records import (
    ForwardPass,
    NativeForwardPass,
    Queued,
    Scheduled,
    ScheduledWithLengths,
    UnversionedForwardPass,
    encode,
    trace_value,
)

SUBSCRIBER_TIMEOUT_MS = 60_000
RECORDS = {
    "v1": ForwardPass,
    "native": NativeForwardPass,
    "unversioned": UnversionedForwardPass,
    "additive": ForwardPass,
}


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--endpoint", required=True, help="tcp://host:port (rank k binds port+k) or ipc://path (path.k)")
    p.add_argument("--ranks", type=int, default=1)
    p.add_argument("--variant", choices=RECORDS, default="v1")
    p.add_argument("--worker-id", default="")
    p.add_argument("--count", type=int, default=0, help="messages a rank; 0 sends until killed")
    p.add_argument("--rate", type=float, default=500, help="messages a second and rank")
    p.add_argument("--heartbeat-every", type=int, default=0, help="each n-th message is a heartbeat")
    p.add_argument("--bad-every", type=int, default=0, help="after each n-th message a bad one, kind by kind")
    p.add_argument("--dump", help="file for what was sent")
    p.add_argument("--socket", choices=["xpub", "pub"], default="xpub",
                   help="xpub knows when it has a subscriber; pub, as in engines, sends at once. "
                        "Both put the same messages on the wire.")
    return p.parse_args()


def rank_endpoint(endpoint: str, rank: int) -> str:
    if endpoint.startswith("ipc://"):
        return f"{endpoint}.{rank}"
    host, _, port = endpoint.rpartition(":")
    return f"{host}:{int(port) + rank}"


def bind(context: zmq.Context, options: argparse.Namespace) -> list[zmq.Socket]:
    """Socket options are libzmq's defaults, as the engines leave them."""
    sockets = []
    for rank in range(options.ranks):
        socket = context.socket(zmq.XPUB if options.socket == "xpub" else zmq.PUB)
        socket.bind(rank_endpoint(options.endpoint, rank))
        sockets.append(socket)
    return sockets


def wait_for_subscribers(sockets: list[zmq.Socket]) -> None:
    for socket in sockets:
        if not socket.poll(SUBSCRIBER_TIMEOUT_MS):
            sys.exit("no subscriber")
        message = socket.recv()
        if message != b"\x01":
            sys.exit(f"not a subscription to everything: {message!r}")


def group(source: random.Random, cls, **more):
    """Some counts hold for many passes, as those of an engine at rest do."""
    prefill, decode = source.choice([0, 0, 0, 1, 4]), source.choice([0, 1, 32, 32, 32, 64])
    return cls(
        num_prefill_requests=prefill,
        sum_prefill_tokens=prefill * source.choice([128, 512, 2048]),
        var_prefill_length=source.choice([0.0, 100.0, source.random() * 1e6]) if prefill else 0.0,
        num_decode_requests=decode,
        sum_decode_kv_tokens=decode * source.randrange(100, 4000),
        var_decode_kv_tokens=source.choice([0.25, source.random() * 1e5]) if decode else 0.0,
        **more,
    )


def record(options: argparse.Namespace, rank: int, sequence: int, source: random.Random, last: bool):
    identity = {"worker_id": options.worker_id, "dp_rank": rank}
    if options.variant != "unversioned":
        identity["counter_id"] = sequence
    cls = RECORDS[options.variant]
    if options.heartbeat_every and (sequence + 1) % options.heartbeat_every == 0 and not last:
        return cls(**identity)
    if options.variant == "additive":
        scheduled = group(source, ScheduledWithLengths, sum_prefill_kv_tokens=source.randrange(100))
        n = scheduled.num_prefill_requests + scheduled.num_decode_requests
        scheduled = msgspec.structs.replace(
            scheduled,
            extend_lengths=[source.randrange(1, 512) for _ in range(n)],
            past_kv_lengths=[source.randrange(4096) for _ in range(n)],
        )
    else:
        scheduled = group(source, Scheduled, sum_prefill_kv_tokens=source.randrange(100))
    return cls(
        **identity,
        wall_time=0.0 if sequence % 50 == 7 else source.choice([0.025, 0.005 + source.random() / 20]),
        scheduled_requests=scheduled,
        queued_requests=group(source, Queued),
    )


def bad_messages(sequence: int, last: tuple[bytes, ...]) -> list[tuple[str, tuple[bytes, ...]]]:
    """Messages that a reader must not pass on, with the reason. last is the
    message that was sent before."""
    number = sequence.to_bytes(8, "big")
    good = encode(ForwardPass(counter_id=sequence))
    too_big = ForwardPass(counter_id=sequence, scheduled_requests=Scheduled(sum_decode_kv_tokens=2**63))
    return [
        ("malformed", (b"", number, b"\xc1")),
        ("malformed", (b"", number, encode({}))),
        ("malformed", (b"", number, good + b"\x00")),
        ("malformed", (b"", number, encode(ForwardPass(wall_time=float("nan"))))),
        ("unsupported_version", (b"", number, encode(ForwardPass(version=2)))),
        ("out_of_range", (b"", number, encode(too_big))),
        # First of its reason, so that it is the one the log shows: Dynamo's event plane.
        ("envelope", (b"forward-pass-metrics", number, number, good)),
        ("envelope", (b"", good)),
        ("envelope", (b"kv-events", number, good)),
        ("envelope", (b"", number[1:], good)),
        ("duplicate", last),
    ]


def publish(sockets: list[zmq.Socket], options: argparse.Namespace) -> None:
    sources = [random.Random(rank) for rank in range(options.ranks)]
    dump = open(options.dump, "w", buffering=1, encoding="utf-8", newline="\n") if options.dump else None
    start = time.monotonic()
    for sequence in range(options.count) if options.count else itertools.count():
        for rank, socket in enumerate(sockets):
            message = record(options, rank, sequence, sources[rank], sequence == options.count - 1)
            if dump:
                row = rust_json.dumps(trace_value(message, sequence))
                dump.write(f'{{"rank":{rank},"sequence":{sequence},"fpm":{row}}}\n')
            frames = (b"", sequence.to_bytes(8, "big"), encode(message))
            socket.send_multipart(frames, flags=zmq.NOBLOCK)
            if options.bad_every and (sequence + 1) % options.bad_every == 0:
                kinds = bad_messages(sequence, frames)
                reason, frames = kinds[sequence // options.bad_every % len(kinds)]
                if dump:
                    dump.write(f'{{"rank":{rank},"sequence":{sequence},"bad":"{reason}"}}\n')
                socket.send_multipart(frames, flags=zmq.NOBLOCK)
        time.sleep(max(0.0, start + (sequence + 1) / options.rate - time.monotonic()))
    if dump:
        dump.close()


def main() -> None:
    options = arguments()
    context = zmq.Context()
    sockets = bind(context, options)
    print("bound", flush=True)
    if options.socket == "xpub":
        wait_for_subscribers(sockets)
        print("subscribed", flush=True)
    publish(sockets, options)
    print("sent", flush=True)
    sys.stdin.read()
    context.destroy(linger=1000)


if __name__ == "__main__":
    main()
