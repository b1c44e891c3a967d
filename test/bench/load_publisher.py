# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Publishes forward passes at a steady rate, with the libraries of the engines.

One PUB socket a rank on adjacent ports. The messages have the size and shape of a
busy engine's (about 435 bytes); counts and durations vary, so that every gauge changes
at most passes. Prints the messages sent a rank when it is terminated.
"""

import argparse
import signal
import time

import msgspec
import zmq


RANKS_PER_WORKER = 8


class Scheduled(msgspec.Struct):
    num_prefill_requests: int = 0
    sum_prefill_tokens: int = 0
    var_prefill_length: float = 0.0
    sum_prefill_kv_tokens: int = 0
    num_decode_requests: int = 0
    sum_decode_kv_tokens: int = 0
    var_decode_kv_tokens: float = 0.0


class Queued(msgspec.Struct):
    num_prefill_requests: int = 0
    sum_prefill_tokens: int = 0
    var_prefill_length: float = 0.0
    num_decode_requests: int = 0
    sum_decode_kv_tokens: int = 0
    var_decode_kv_tokens: float = 0.0


class ForwardPassMetrics(msgspec.Struct):
    version: int
    worker_id: str
    dp_rank: int
    counter_id: int
    wall_time: float
    scheduled_requests: Scheduled
    queued_requests: Queued


def fill(message: ForwardPassMetrics, counter: int) -> None:
    """Changes a message into the one with this counter."""
    message.counter_id = counter
    message.wall_time = 0.005 + (counter * 7919 % 1000) * 2e-5
    scheduled, queued = message.scheduled_requests, message.queued_requests
    scheduled.num_prefill_requests = counter % 3
    scheduled.sum_prefill_tokens = counter % 3 * 512
    scheduled.var_prefill_length = (counter % 17) * 12.125
    scheduled.sum_prefill_kv_tokens = counter % 5 * 64
    scheduled.num_decode_requests = 32 + counter % 64
    scheduled.sum_decode_kv_tokens = 20000 + counter * 13 % 9000
    scheduled.var_decode_kv_tokens = 1000.5 + counter % 777
    queued.num_prefill_requests = counter % 4
    queued.sum_prefill_tokens = counter % 4 * 700


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=20380, help="port of rank 0")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--rate", type=int, default=1250, help="messages a second and rank")
    args = parser.parse_args()

    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)

    context = zmq.Context()
    context.set(zmq.MAX_SOCKETS, args.ranks + 1)
    sockets = []
    for rank in range(args.ranks):
        socket = context.socket(zmq.PUB)
        socket.bind(f"tcp://127.0.0.1:{args.port + rank}")
        sockets.append(socket)
    messages = [
        ForwardPassMetrics(1, f"bench-{rank // RANKS_PER_WORKER}", rank % RANKS_PER_WORKER, 0, 0.0, Scheduled(), Queued())
        for rank in range(args.ranks)
    ]
    encoder = msgspec.msgpack.Encoder()
    print("bound", flush=True)

    # The ranks take turns and each message goes out when it is due: engines know nothing
    # of each other, so a consumer is woken for nearly every one.
    sent = 0
    rate = args.rate * args.ranks
    started = time.monotonic()
    while not stopped:
        due = int((time.monotonic() - started) * rate)
        for turn in range(sent, due):
            counter, rank = divmod(turn, args.ranks)
            message = messages[rank]
            fill(message, counter)
            sockets[rank].send_multipart((b"", counter.to_bytes(8, "big"), encoder.encode(message)), zmq.NOBLOCK)
        sent = max(sent, due)
        time.sleep(max(0.0, started + (sent + 1) / rate - time.monotonic()))
    print(sent, flush=True)
    context.destroy(linger=0)


if __name__ == "__main__":
    main()
