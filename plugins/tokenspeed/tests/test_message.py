# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import enum
import fractions
from typing import Any

import msgspec
import pytest

from tokenspeed_otelcol.message import UNENCODABLE, Producer, Writer

WRITER = Writer(Producer("gpu-7", 42, 1_700_000_000_000_000_000), {"zone": "a", "gpu": 7})


def record(value: Any = 1.5, labels: Any = None, operation: Any = "observe", weight: Any = 3) -> Any:
    return (1, "tokenspeed:x", operation, value, {"dp_rank": "0"} if labels is None else labels, weight)


def test_the_bytes_of_a_message() -> None:
    message = WRITER.message(512, 3, [record(0.01, {"app_key": None})])
    assert message == (
        b"\x86"
        b"\xa1v\x01"
        b"\xa8producer\x83\xa4host\xa5gpu-7\xa3pid\x2a\xa8start_ns\xcf\x17\x97\x9c\xfe6*\x00\x00"
        b"\xa3seq\xcd\x02\x00"
        b"\xaddropped_total\x03"
        b"\xa8resource\x82\xa4zone\xa1a\xa3gpu\x07"
        b"\xa6events\x91\x96\x01\xactokenspeed:x\xa7observe\xcb?\x84z\xe1G\xae\x14{\x81\xa7app_key\xc0\x03"
    )


def test_a_message_may_have_no_events() -> None:
    message = msgspec.msgpack.decode(WRITER.message(7, 8, []))
    assert (message["seq"], message["dropped_total"], message["events"]) == (7, 8, [])


class Operation(enum.StrEnum):
    SET = "set"


class Text(str): ...


class Whole(int): ...


class Real(float): ...


class ArrayWhole:
    """As the whole numbers of array libraries are: no int, but one by protocol."""

    def __index__(self) -> int:
        return 7

    def __float__(self) -> float:
        return 7.0


class ArrayReal:
    def __index__(self) -> int:
        raise TypeError("only integer arrays have an index")

    def __float__(self) -> float:
        return 0.25


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1, 1), (0.5, 0.5), (-3, -3), (2**64 - 1, 2**64 - 1), (-(2**63), -(2**63)), (True, True), (None, None),
        (float("inf"), float("inf")), (Whole(3), 3), (Real(0.5), 0.5), (ArrayWhole(), 7), (ArrayReal(), 0.25),
        (fractions.Fraction(1, 4), 0.25), ("text", "text"),
    ],
)  # fmt: skip
def test_values_that_can_be_written(value: object, written: object) -> None:
    """Which of them make sense is the receiver's to judge."""
    (event,) = msgspec.msgpack.decode(WRITER.message(0, 0, [record(value)]))["events"]
    assert event[3] == written
    assert type(event[3]) is type(written)
    assert WRITER.problem(record(value)) == ""


def test_subclasses_of_text() -> None:
    message = WRITER.message(0, 0, [record(labels={Text("a"): Text("b")}, operation=Operation.SET)])
    (event,) = msgspec.msgpack.decode(message)["events"]
    assert event[2] == "set"
    assert event[4] == {"a": "b"}


def test_nan_is_written() -> None:
    (event,) = msgspec.msgpack.decode(WRITER.message(0, 0, [record(float("nan"))]))["events"]
    assert event[3] != event[3]


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (record(object()), "TypeError"),
        (record(1j), "TypeError"),
        (record(2**64), "OverflowError"),
        (record(-(2**63) - 1), "OverflowError"),
        (record(labels={"a": "\ud800"}), "UnicodeEncodeError"),
        (record(nested(100_000)), "RecursionError"),
    ],
    ids=["object", "complex", "large", "small", "surrogate", "nested"],
)
def test_events_that_cannot_be_written(event: Any, problem: str) -> None:
    with pytest.raises(UNENCODABLE):
        WRITER.message(0, 0, [record(), event])
    assert WRITER.problem(event).startswith(problem)
