# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""An engine process: emits events through its output plugin. tokenspeed.py ENDPOINT RANK EVENTS."""

import sys
import time
from dataclasses import dataclass

from tokenspeed_otelcol import create_sink, validate


@dataclass(frozen=True)
class Event:
    metric: str
    operation: str
    value: float
    weight: int
    labels: dict
    timestamp_ns: int


endpoint, rank, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
labels = {"model_name": "test", "app_key": None, "dp_rank": rank}
sink = create_sink(validate({"endpoint": endpoint}))
for i in range(count):
    for metric, operation, value, weight in (
        ("tokenspeed:inter_token_latency_seconds", "observe", 0.01, 3),
        ("tokenspeed:generation_tokens_total", "inc", 3, 1),
        ("tokenspeed:num_requests_running", "set", i, 1),
    ):
        sink.emit(Event(metric, operation, value, weight, labels, time.time_ns()))
    time.sleep(0.002)
sink.close(10)
