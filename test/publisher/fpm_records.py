# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Forward pass records as each kind of publisher declares and encodes them.

The structs follow the declared field order of the publishers, because msgspec
writes map keys in that order. The encoder is msgspec itself, as in the engines.
"""

import msgspec


class Scheduled(msgspec.Struct, frozen=True, gc=False):
    num_prefill_requests: int = 0
    sum_prefill_tokens: int = 0
    var_prefill_length: float = 0.0
    sum_prefill_kv_tokens: int = 0
    num_decode_requests: int = 0
    sum_decode_kv_tokens: int = 0
    var_decode_kv_tokens: float = 0.0


class ScheduledWithLengths(msgspec.Struct, frozen=True, gc=False):
    """Scheduled requests with the additive fields of aisimulate's patch."""

    num_prefill_requests: int = 0
    sum_prefill_tokens: int = 0
    var_prefill_length: float = 0.0
    sum_prefill_kv_tokens: int = 0
    num_decode_requests: int = 0
    sum_decode_kv_tokens: int = 0
    var_decode_kv_tokens: float = 0.0
    extend_lengths: list[int] = []
    past_kv_lengths: list[int] = []


class Queued(msgspec.Struct, frozen=True, gc=False):
    """Queued requests have no sum_prefill_kv_tokens."""

    num_prefill_requests: int = 0
    sum_prefill_tokens: int = 0
    var_prefill_length: float = 0.0
    num_decode_requests: int = 0
    sum_decode_kv_tokens: int = 0
    var_decode_kv_tokens: float = 0.0


class ForwardPass(msgspec.Struct, frozen=True, gc=False):
    """Version 1: Dynamo's vLLM publisher and SGLang."""

    version: int = 1
    worker_id: str = ""
    dp_rank: int = 0
    counter_id: int = 0
    wall_time: float = 0.0
    scheduled_requests: Scheduled | ScheduledWithLengths = Scheduled()
    queued_requests: Queued = Queued()


class NativeForwardPass(msgspec.Struct, frozen=True, gc=False):
    """vLLM's own publisher says what wall_time measures."""

    version: int = 1
    worker_id: str = ""
    dp_rank: int = 0
    counter_id: int = 0
    timing_scope: str = "model_step_cuda"
    wall_time: float = 0.0
    scheduled_requests: Scheduled = Scheduled()
    queued_requests: Queued = Queued()


class UnversionedForwardPass(msgspec.Struct, frozen=True, gc=False):
    """The first releases of Dynamo and SGLang: no version, no counter_id."""

    worker_id: str = ""
    dp_rank: int = 0
    wall_time: float = 0.0
    scheduled_requests: Scheduled = Scheduled()
    queued_requests: Queued = Queued()


def encode(record) -> bytes:
    return msgspec.msgpack.encode(record)


def trace_value(record, sequence: int) -> dict:
    """The record as the `fpm` object of a trace row has it: as it was sent, with
    what an unversioned record lacks put where version 1 has it."""
    value = msgspec.msgpack.decode(encode(record))
    if isinstance(record, UnversionedForwardPass):
        value = {
            "version": 1,
            "worker_id": value.pop("worker_id"),
            "dp_rank": value.pop("dp_rank"),
            "counter_id": sequence,
            **value,
        }
    return value
