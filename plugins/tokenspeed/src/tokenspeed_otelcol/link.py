# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""The ZMQ PUSH socket: a thin shell over pyzmq that never waits to send."""

from __future__ import annotations

from collections.abc import Sequence

import zmq

# Messages the socket holds for a collector that is slow. It is small because they
# are lost, and only the receiver can tell, when the collector dies.
_SEND_HIGH_WATER_MARK = 8
# Reconnects start after 100 ms and come at least every second, for ever.
_RECONNECT_MS = 100
_RECONNECT_MAX_MS = 1_000
_CONNECT_TIMEOUT_MS = 3_000
# A peer that is gone without a word (a node lost its power) is given up after that
# time, instead of the quarter of an hour that the kernel tries. The kernel gives up
# one that stands still, its buffers full, after the same time; so it is not short.
_PEER_GONE_MS = 120_000


class PushLink:
    """One PUSH socket with a context of its own, for one thread of one process.

    Opens itself at first use. Raises zmq.ZMQError when the system refuses a socket;
    an absent collector is no error.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._socket: zmq.Socket[bytes] | None = None

    def open(self) -> zmq.Socket[bytes]:
        if self._socket is None:
            try:
                self._context = zmq.Context(io_threads=1)
                self._socket = self._context.socket(zmq.PUSH)
                self._connect(self._socket)
            except BaseException:
                self.close(0)
                raise
        return self._socket

    def _connect(self, socket: zmq.Socket[bytes]) -> None:
        # Only a connection that stands is given messages: with no collector they
        # stay in our queue, where a drop is counted.
        socket.setsockopt(zmq.IMMEDIATE, 1)
        socket.setsockopt(zmq.SNDHWM, _SEND_HIGH_WATER_MARK)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, _RECONNECT_MAX_MS)
        socket.setsockopt(zmq.CONNECT_TIMEOUT, _CONNECT_TIMEOUT_MS)
        socket.setsockopt(zmq.TCP_MAXRT, _PEER_GONE_MS)
        socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
        if self._endpoint.startswith("tcp://["):
            socket.setsockopt(zmq.IPV6, 1)
        socket.connect(self._endpoint)

    def ready(self, seconds: float) -> bool:
        """Tell whether a message can be sent, waiting that long for it at most."""
        return bool(self.open().poll(max(0, round(seconds * 1000)), zmq.POLLOUT))

    def send(self, frames: Sequence[bytes]) -> bool:
        """Hand one message to the socket, whole; False when it has no room for it now."""
        try:
            self.open().send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def close(self, linger: float) -> None:
        """Give the socket that many seconds at most to pass on what it has; then it is gone."""
        socket, context = self._socket, self._context
        self._socket = self._context = None
        if socket is not None:
            socket.close(linger=max(0, round(linger * 1000)))
        if context is not None:
            context.term()
