# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Encode records of version 1 with msgspec, the encoder of the engines.

Reads one JSON object a line, writes the payload of each as a line of hex.
"""

import pathlib
import sys

import msgspec

sys.path.insert(0, str(pathlib.Path(__file__).parents[5] / "test" / "publisher"))
from fpm_records import Queued, Scheduled, encode  # noqa: E402


class ForwardPass(msgspec.Struct):
    """Version 1 with one type a group, so that JSON can be decoded into it."""

    version: int = 1
    worker_id: str = ""
    dp_rank: int = 0
    counter_id: int = 0
    wall_time: float = 0.0
    scheduled_requests: Scheduled = Scheduled()
    queued_requests: Queued = Queued()


for line in sys.stdin.buffer:
    print(encode(msgspec.json.decode(line, type=ForwardPass)).hex())
