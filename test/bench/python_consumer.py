# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""The consumer one writes from the public page: the thing otelcol-fpm is measured against.

Subscribes to all ranks, decodes each message, and with --trace writes it as a row of a
gzip JSONL file with the standard library, flushed each second. Prints the messages it
took when it is terminated.
"""

import argparse
import gzip
import json
import signal
import time

import msgspec
import zmq


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=20380)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--trace", help="file to write")
    args = parser.parse_args()

    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)

    context = zmq.Context()
    socket = context.socket(zmq.SUB)
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.setsockopt(zmq.RCVTIMEO, 200)
    for rank in range(args.ranks):
        socket.connect(f"tcp://127.0.0.1:{args.port + rank}")
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    decoder = msgspec.msgpack.Decoder()
    output = gzip.open(args.trace, "ab", 6) if args.trace else None

    taken = 0
    started = flushed = time.monotonic()
    while not stopped:
        try:
            _, _, payload = socket.recv_multipart()
        except zmq.Again:
            continue
        record = decoder.decode(payload)
        taken += 1
        if output is None:
            continue
        now = time.monotonic()
        row = {
            "timestamp": int((now - started) * 1000),
            "event": {
                "schema": "dynamo.fpm.trace.v1",
                "source": {"namespace": "default", "component": "backend", "producer_id": "bench"},
                "capture_mode": "full",
                "observed_at_unix_ms": int(time.time() * 1000),
                "fpm": record,
            },
        }
        output.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        if now - flushed >= 1:
            output.flush()
            flushed = now
    if output is not None:
        output.close()
    print(taken, flush=True)
    context.destroy(linger=0)


if __name__ == "__main__":
    main()
