# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Pushes metric events with the libraries that engines use.

Reads requests, one JSON object a line, and answers each with one:
{"op": "open", "producer": 1, "endpoint": "tcp://…"}
{"op": "push", "producer": 1, "messages": 10, "events": 5, "bad": 0}   answers {"sent": events so far}
{"op": "close", "producer": 1}                                        waits until all is sent
"""

import json
import sys
import time

import msgspec
import zmq

context = zmq.Context()
encoder = msgspec.msgpack.Encoder()
sockets = {}
sent = {}


def events(count, bad):
    """Return events of every kind; of each ten, `bad` have a weight that is no weight."""
    labels = {"model_name": "llama", "app_key": None, "dp_rank": "0"}
    out = []
    for i in range(count):
        now = time.time_ns()
        if i % 10 < bad:
            out.append([now, "tokenspeed:inter_token_latency_seconds", "observe", 0.01, labels, -1])
        elif i % 3 == 0:
            out.append([now, "tokenspeed:inter_token_latency_seconds", "observe", 0.01, labels, 3])
        elif i % 3 == 1:
            out.append([now, "tokenspeed:generation_tokens_total", "inc", 2, labels, 1])
        else:
            out.append([now, "tokenspeed:num_requests_running", "set", i, labels, 1])
    return out


def serve(request):
    op, producer = request["op"], request["producer"]
    if op == "open":
        socket = context.socket(zmq.PUSH)
        socket.setsockopt(zmq.IMMEDIATE, 1)
        socket.setsockopt(zmq.RECONNECT_IVL, 20)
        socket.setsockopt(zmq.LINGER, 10_000)
        socket.connect(request["endpoint"])
        sockets[producer], sent[producer] = socket, 0
    elif op == "push":
        for _ in range(request["messages"]):
            batch = events(request["events"], request.get("bad", 0))
            message = {
                "v": 1,
                "producer": {"host": "gpu-7", "pid": producer, "start_ns": 1_600_000_000_000_000_000},
                "seq": sent[producer],
                "dropped_total": 0,
                "resource": {"engine": "test"},
                "events": batch,
            }
            sockets[producer].send_multipart([b"tsme1", encoder.encode(message)])
            sent[producer] += len(batch)
    elif op == "close":
        sockets.pop(producer).close()
    return {"sent": sent[producer]}


for line in sys.stdin:
    print(json.dumps(serve(json.loads(line))), flush=True)
context.destroy()
