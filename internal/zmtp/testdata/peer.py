# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""A libzmq peer under remote control: one JSON object a line on stdin says what to do, one on stdout says what came of it."""

import json
import os
import sys
import time

import zmq
from zmq.utils.monitor import parse_monitor_message


class Peer:
    def __init__(self):
        self.context = zmq.Context()
        self.socket = None
        self.monitor = None
        self.counts = {}
        self.sequence = 0

    def version(self):
        return {"pyzmq": zmq.pyzmq_version(), "libzmq": zmq.zmq_version()}

    def open(self, type, options=None):
        self.close()
        self.counts = {}
        self.socket = self.context.socket(getattr(zmq, type))
        self.socket.linger = 2000
        for name, value in (options or {}).items():
            self.socket.setsockopt(getattr(zmq, name), value)
        self.monitor = self.socket.get_monitor_socket()
        return {}

    def close(self):
        if self.socket is not None:
            self.socket.disable_monitor()
            self.socket.close()
            self.socket = None
        return {}

    def bind(self, endpoint):
        deadline = time.monotonic() + 10
        while True:
            try:
                self.socket.bind(endpoint)
                break
            except zmq.ZMQError as e:
                # A socket closed just now gives its port back a little later.
                if e.errno != zmq.EADDRINUSE or time.monotonic() > deadline:
                    raise
                time.sleep(0.001)
        return {"endpoint": self.socket.getsockopt_string(zmq.LAST_ENDPOINT)}

    def connect(self, endpoint):
        self.socket.connect(endpoint)
        return {}

    def send(self, count=1, size=435, frames=1, seconds=None):
        """Sends count messages (or for some seconds) of an empty topic, a sequence and frames bodies of size bytes."""
        body = [b"x" * size] * frames
        end = None if seconds is None else time.monotonic() + seconds
        first = self.sequence
        while (self.sequence - first < count) if end is None else (time.monotonic() < end):
            self.socket.send_multipart([b"", self.sequence.to_bytes(8, "big"), *body])
            self.sequence += 1
        return {"next": self.sequence}

    def recv(self, timeout_ms):
        if not self.socket.poll(timeout_ms):
            return {"hex": None}
        return {"hex": self.socket.recv().hex()}

    def restarts(self, count, endpoint, messages):
        """A publisher that starts, waits for its subscriber, sends and ends, count times."""
        for _ in range(count):
            self.open("XPUB")
            self.bind(endpoint)
            if self.recv(10_000)["hex"] != "01":
                raise RuntimeError("no subscription")
            self.send(messages)
            self.close()
        return {"next": self.sequence}

    def events(self):
        """Counts of what the socket's monitor has told since open."""
        while self.monitor.poll(0):
            event = zmq.Event(parse_monitor_message(self.monitor.recv_multipart())["event"]).name
            self.counts[event] = self.counts.get(event, 0) + 1
        return self.counts


def main():
    peer = Peer()
    for line in sys.stdin:
        request = json.loads(line)
        op = request.pop("op")
        try:
            answer = getattr(peer, op)(**request)
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)
    os._exit(0)


main()
