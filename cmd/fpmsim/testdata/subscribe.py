# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Subscribe to endpoints with libzmq and print what arrives.

usage: subscribe.py COUNT ENDPOINT...

Prints COUNT messages of each endpoint as JSON lines: the endpoint, the number
of frames, the topic, the sequence and the decoded payload.
"""

import json
import sys

import msgspec
import zmq

count = int(sys.argv[1])
context = zmq.Context()
sockets = {}
for endpoint in sys.argv[2:]:
    socket = sockets[endpoint] = context.socket(zmq.SUB)
    # libzmq's own heartbeats: the publisher must answer, or is hung up on.
    socket.setsockopt(zmq.HEARTBEAT_IVL, 100)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 1000)
    socket.setsockopt(zmq.RCVTIMEO, 20_000)
    socket.connect(endpoint)
    socket.subscribe(b"")
for endpoint, socket in sockets.items():
    for _ in range(count):
        frames = socket.recv_multipart()
        print(json.dumps({
            "endpoint": endpoint,
            "frames": len(frames),
            "topic": frames[0].hex(),
            "sequence": int.from_bytes(frames[1], "big"),
            "payload": msgspec.msgpack.decode(frames[2]),
        }), flush=True)
context.destroy(linger=0)
