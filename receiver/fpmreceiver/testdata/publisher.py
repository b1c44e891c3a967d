# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Publish messages that the test makes, through libzmq: one JSON request a line on standard input, one answer a line."""

import json
import os
import sys

import zmq


class Publisher:
    def __init__(self):
        self.context = zmq.Context()
        self.sockets = {}

    def bind(self, endpoint, type="XPUB"):
        """Binds a socket and answers with its endpoint. An XPUB is a PUB that knows its subscribers."""
        socket = self.context.socket(getattr(zmq, type))
        socket.linger = 2000
        socket.bind(endpoint)
        bound = socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self.sockets[bound] = socket
        return bound

    def subscribed(self, endpoint):
        """Waits for one more subscription to everything; subscriptions also end (0)."""
        socket = self.sockets[endpoint]
        while socket.poll(20_000):
            if socket.recv() == b"\x01":
                return
        raise RuntimeError("no subscription")

    def send(self, endpoint, messages):
        """Sends messages of frames in hexadecimal."""
        for frames in messages:
            self.sockets[endpoint].send_multipart([bytes.fromhex(frame) for frame in frames])

    def close(self, endpoint):
        self.sockets.pop(endpoint).close()


def main():
    publisher = Publisher()
    for line in sys.stdin:
        request = json.loads(line)
        op = request.pop("op")
        try:
            answer = {"answer": getattr(publisher, op)(**request)}
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)
    os._exit(0)


main()
