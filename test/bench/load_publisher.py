# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Publishes forward passes at a steady rate, with the libraries of the engines.

One PUB socket a rank on adjacent ports. The messages have the size and shape of a
busy engine's (about 435 bytes); counts and durations vary, so that every gauge changes
at most passes. At its end it prints how many messages it sent, and how many counters it
left out.
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


def subscribed(socket: zmq.Socket) -> None:
    """Waits until somebody has subscribed; what is sent before that reaches nobody."""
    while socket.recv()[:1] != b"\x01":
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=20380, help="port of rank 0")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--rate", type=int, default=1250, help="messages a second and rank; 0: as fast as it goes")
    parser.add_argument("--count", type=int, default=0, help="messages in all; 0: until it is terminated")
    parser.add_argument("--gap-every", type=int, default=0, help="leave out each Nth message of a rank, counter and all; 0: none")
    parser.add_argument("--wait", action="store_true", help="begin when all ranks have a subscriber")
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
        # On the wire the same as PUB, but it tells of subscribers.
        socket = context.socket(zmq.XPUB if args.wait else zmq.PUB)
        socket.bind(f"tcp://127.0.0.1:{args.port + rank}")
        sockets.append(socket)
    messages = [
        ForwardPassMetrics(1, f"bench-{rank // RANKS_PER_WORKER}", rank % RANKS_PER_WORKER, 0, 0.0, Scheduled(), Queued())
        for rank in range(args.ranks)
    ]
    encoder = msgspec.msgpack.Encoder()
    print("bound", flush=True)
    if args.wait:
        for socket in sockets:
            subscribed(socket)
        time.sleep(0.2)

    # The ranks take turns and each message goes out when it is due: engines know nothing
    # of each other, so a consumer is woken for nearly every one.
    turn = sent = left_out = 0
    rate = args.rate * args.ranks
    end = args.count or 1 << 62
    started = time.monotonic()
    while not stopped and turn < end:
        due = min(end, int((time.monotonic() - started) * rate)) if rate else min(end, turn + 1000)
        for turn in range(turn, due):
            counter, rank = divmod(turn, args.ranks)
            # Never the last one: nothing after it would tell of the gap.
            if args.gap_every and counter % args.gap_every == args.gap_every - 1 and turn < end - args.ranks:
                left_out += 1
                continue
            message = messages[rank]
            fill(message, counter)
            sockets[rank].send_multipart((b"", counter.to_bytes(8, "big"), encoder.encode(message)), zmq.NOBLOCK)
            sent += 1
        turn = max(turn, due)
        if rate:
            time.sleep(max(0.0, started + (turn + 1) / rate - time.monotonic()))
    if args.wait and turn >= args.ranks:
        # One more of each rank, when all is calm, tells of what was left out or dropped before it.
        time.sleep(1)
        for rank, socket in enumerate(sockets):
            counter = (turn + args.ranks - 1 - rank) // args.ranks
            fill(messages[rank], counter)
            socket.send_multipart((b"", counter.to_bytes(8, "big"), encoder.encode(messages[rank])), zmq.NOBLOCK)
            sent += 1
        time.sleep(1)
    print(sent, left_out, flush=True)
    context.destroy(linger=0)


if __name__ == "__main__":
    main()
