# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from tokenspeed_otelcol.intake import Closing, Intake, Record
from tokenspeed_otelcol.ledger import REASONS, Ledger, Tally

RECORD: Record = (1, "m", "set", 1.0, {"a": "b"}, 1)


@pytest.fixture
def restless() -> Iterator[None]:
    """Let the interpreter switch threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def in_threads(count: int, run: object) -> None:
    threads = [threading.Thread(target=run) for _ in range(count)]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.usefixtures("restless")
def test_a_tally_loses_no_step_to_other_threads_or_to_being_read() -> None:
    tally = Tally()
    seen: list[int] = []

    def add() -> None:
        for _ in range(10_000):
            tally.add()

    def read() -> None:
        seen.extend(tally.value() for _ in range(1000))

    reader = threading.Thread(target=read)
    reader.start()
    in_threads(8, add)
    reader.join()
    assert tally.value() == 80_000
    assert tally.value() == 80_000
    assert seen == sorted(seen)


def test_the_summary_names_the_reasons() -> None:
    ledger = Ledger()
    assert ledger.summary() == "sent 0, dropped 0"
    ledger.sent = 7
    for _ in range(2):
        ledger.drops["queue_full"].add()
    ledger.drops["closed"].add()
    assert ledger.summary() == "sent 7, dropped 3 (queue_full 2, closed 1)"
    assert ledger.dropped_total() == 3
    assert list(ledger.dropped_by_reason()) == list(REASONS)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("attempt", range(5))
def test_every_record_that_came_in_is_taken_exactly_once(attempt: int) -> None:
    """Threads add while the intake finishes: what is found late is reclaimed by who added it."""
    ledger = Ledger()
    intake = Intake(1_000_000, 512, ledger)
    added = Tally()
    taken = 0

    def add() -> None:
        for _ in range(20_000):
            intake.records.append(RECORD)
            added.add()
            if intake.finished:
                intake.reclaim()

    def deliver() -> None:
        nonlocal taken
        for _ in range(20):
            taken += len(intake.take(100))
        intake.close(Closing.within(0))
        intake.finish()

    delivery = threading.Thread(target=deliver)
    delivery.start()
    in_threads(4, add)
    delivery.join()
    assert not intake.records
    assert taken + ledger.dropped_total() == added.value() == 80_000


def test_records_are_taken_oldest_first() -> None:
    intake = Intake(10, 512, Ledger())
    for number in range(5):
        intake.records.append((number, "m", "set", 1.0, {}, 1))
    assert [record[0] for record in intake.take(3)] == [0, 1, 2]
    assert [record[0] for record in intake.take(3)] == [3, 4]
    assert intake.take(3) == []


def test_a_wake_before_the_wait_is_not_lost() -> None:
    intake = Intake(10, 512, Ledger())
    intake.wake()
    intake.wake()
    intake.wait(60)


def test_a_full_batch_and_close_end_the_wait() -> None:
    intake = Intake(10, 2, Ledger())
    intake.records.extend([RECORD] * 2)
    intake.wait(60)
    intake = Intake(10, 2, Ledger())
    intake.close(Closing.within(1))
    intake.wait(60)
    intake.pause(60)


def test_the_first_close_sets_the_times() -> None:
    intake = Intake(10, 2, Ledger())
    intake.close(Closing(1, 2, 3))
    intake.close(Closing(4, 5, 6))
    assert intake.closing == Closing(1, 2, 3)
    assert intake.room == 0
