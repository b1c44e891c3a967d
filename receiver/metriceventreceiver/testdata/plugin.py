# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Emits events through the output plugin of the engine: plugin.py ENDPOINT EVENTS."""

import sys
import time
from dataclasses import dataclass, field

from tokenspeed_otelcol import create_sink, validate


@dataclass(frozen=True)
class Event:
    metric: str
    operation: str
    value: float
    weight: int = 1
    labels: dict = field(default_factory=lambda: {"model_name": "llama", "app_key": None, "dp_rank": "0"})
    timestamp_ns: int = field(default_factory=time.time_ns)


endpoint, count = sys.argv[1], int(sys.argv[2])
sink = create_sink(validate({"endpoint": endpoint, "queue_size": 2 * count, "resource": {"engine": "test"}}))
for i in range(count):
    if i % 3 == 0:
        sink.emit(Event("tokenspeed:inter_token_latency_seconds", "observe", 0.01, 3))
    elif i % 3 == 1:
        sink.emit(Event("tokenspeed:generation_tokens_total", "inc", 2))
    else:
        sink.emit(Event("tokenspeed:num_requests_running", "set", i))
sink.close(10)
