# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from tokenspeed_otelcol.report import Report

HINTS = {"queue_full": "is a collector there?", "invalid": "the latest is x"}


def test_drops_are_told_once_in_ten_seconds_a_reason() -> None:
    report = Report()
    full = "is a collector there?"
    told: list[tuple[float, int, int, list[str]]] = [
        (0.0, 0, 0, []),
        (1.0, 3, 0, [f"dropped 3 events (queue_full, 3 since start): {full}"]),
        (2.0, 9, 1, ["dropped 1 events (invalid, 1 since start): the latest is x"]),
        (10.9, 20, 1, []),
        (11.0, 23, 1, [f"dropped 20 events (queue_full, 23 since start): {full}"]),
        (99.0, 23, 1, []),
    ]
    for now, queue_full, invalid, lines in told:
        assert report.drops(now, {"queue_full": queue_full, "invalid": invalid}, HINTS) == lines, now


def test_reasons_without_a_hint_are_not_told() -> None:
    assert Report().drops(0.0, {"queue_full": 0, "invalid": 0, "closed": 5}, HINTS) == []


def test_faults_are_told_once_in_ten_seconds_and_counted_between() -> None:
    report = Report()
    assert report.fault(0.0, "cannot deliver", "one") == ["cannot deliver: one"]
    assert report.fault(1.0, "cannot deliver", "two") == []
    assert report.fault(2.0, "cannot start", "other") == ["cannot start: other"]
    assert report.fault(3.0, "cannot deliver", "three") == []
    assert report.fault(10.0, "cannot deliver", "four") == ["cannot deliver: four (2 more were not shown)"]
    assert report.fault(20.0, "cannot deliver", "five") == ["cannot deliver: five"]
