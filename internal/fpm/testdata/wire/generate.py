# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Write the payload fixtures with msgspec 0.23.0, the encoder of the engines.

Run in this folder: python generate.py

For each message NAME.hex holds the msgpack bytes, 32 a line, and NAME.json what
the encoder means by them: the same keys in the same order, floats with a dot.
"""

import pathlib
import textwrap

import msgspec


class Struct(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    pass


class Scheduled(Struct):
    num_prefill_requests: int = 0
    sum_prefill_tokens: int = 0
    var_prefill_length: float = 0.0
    sum_prefill_kv_tokens: int = 0
    num_decode_requests: int = 0
    sum_decode_kv_tokens: int = 0
    var_decode_kv_tokens: float = 0.0


class Queued(Struct):
    num_prefill_requests: int = 0
    sum_prefill_tokens: int = 0
    var_prefill_length: float = 0.0
    num_decode_requests: int = 0
    sum_decode_kv_tokens: int = 0
    var_decode_kv_tokens: float = 0.0


class Message(Struct):
    """Version 1, as Dynamo's vLLM integration and SGLang send it."""

    version: int = 1
    worker_id: str = ""
    dp_rank: int = 0
    counter_id: int = 0
    wall_time: float = 0.0
    scheduled_requests: Scheduled = Scheduled()
    queued_requests: Queued = Queued()


class ScopedMessage(Struct):
    """Version 1 as vLLM sends it natively."""

    version: int = 1
    worker_id: str = ""
    dp_rank: int = 0
    counter_id: int = 0
    timing_scope: str = ""
    wall_time: float = 0.0
    scheduled_requests: Scheduled = Scheduled()
    queued_requests: Queued = Queued()


class UnversionedMessage(Struct):
    """What the first releases sent."""

    worker_id: str = ""
    dp_rank: int = 0
    wall_time: float = 0.0
    scheduled_requests: Scheduled = Scheduled()
    queued_requests: Queued = Queued()


class ScheduledLengths(Scheduled):
    extend_lengths: list[int] = []
    past_kv_lengths: list[int] = []


busy = Scheduled(
    num_prefill_requests=2,
    sum_prefill_tokens=2048,
    var_prefill_length=65536.25,
    sum_prefill_kv_tokens=512,
    num_decode_requests=96,
    sum_decode_kv_tokens=181344,
    var_decode_kv_tokens=1234567.875,
)
waiting = Queued(
    num_prefill_requests=5,
    sum_prefill_tokens=70000,
    var_prefill_length=0.1,
    num_decode_requests=1,
    sum_decode_kv_tokens=4097,
    var_decode_kv_tokens=0.0,
)

MESSAGES = {
    "dynamo_vllm_v1": Message(
        worker_id="7587888132451209482",
        dp_rank=1,
        counter_id=123456,
        wall_time=0.021337,
        scheduled_requests=busy,
        queued_requests=waiting,
    ),
    "sglang_v1": Message(
        counter_id=200,
        wall_time=0.012500000186264515,
        scheduled_requests=Scheduled(
            num_decode_requests=64, sum_decode_kv_tokens=70000, var_decode_kv_tokens=3.5
        ),
    ),
    "vllm_native": ScopedMessage(
        worker_id="vllm-4f0c6c1e9d2b4b0f8a3e5d7c9b1a2f3e",
        dp_rank=300,
        counter_id=2**32,
        timing_scope="model_step_cuda",
        wall_time=1e-5,
        scheduled_requests=busy,
        queued_requests=waiting,
    ),
    "unversioned": UnversionedMessage(
        dp_rank=2, wall_time=0.5, scheduled_requests=busy, queued_requests=waiting
    ),
    "additive": Message(
        worker_id="w",
        counter_id=7,
        wall_time=0.03,
        scheduled_requests=ScheduledLengths(
            num_prefill_requests=1,
            sum_prefill_tokens=1000,
            num_decode_requests=2,
            sum_decode_kv_tokens=700,
            var_decode_kv_tokens=2500.0,
            extend_lengths=[1000, 1, 1],
            past_kv_lengths=[0, 300, 400],
        ),
    ),
    "heartbeat": Message(worker_id="w", dp_rank=3, counter_id=2**63 - 1),
    # Nothing in the structs keeps an int out of a field declared float.
    "int_in_float_fields": Message(
        worker_id="w",
        counter_id=8,
        wall_time=1,
        scheduled_requests=Scheduled(
            num_prefill_requests=1, sum_prefill_tokens=10, var_prefill_length=0
        ),
        queued_requests=Queued(
            num_decode_requests=2, sum_decode_kv_tokens=600, var_decode_kv_tokens=10000
        ),
    ),
}


def main() -> None:
    here = pathlib.Path(__file__).parent
    for name, message in MESSAGES.items():
        text = msgspec.msgpack.encode(message).hex()
        (here / f"{name}.hex").write_text("\n".join(textwrap.wrap(text, 64)) + "\n")
        meant = msgspec.json.format(msgspec.json.encode(message))
        (here / f"{name}.json").write_bytes(meant + b"\n")


main()
