# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""A million events, and a collector that is stopped, killed and started again."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import pytest
from collector import Collector
from conftest import wait_for
from sample_events import emit_from_threads

from tokenspeed_otelcol.sink import Sink

MakeSink = Callable[..., Sink]

THREADS, EACH = 4, 250_000


def paced(sink: Sink) -> Callable[[int], None]:
    """Bursts of 500 events, and a rest after each, so that a good part can be delivered."""
    return lambda step: time.sleep(0.01) if step % 500 == 0 else None


def test_over_restarts_both_sides_agree_what_was_lost(
    make_sink: MakeSink, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sink = make_sink()
    collector.start()
    done = threading.Event()
    kills = 0

    def restart() -> None:
        nonlocal kills
        while not done.wait(0.7):
            collector.stand_still()  # now messages pile up on the way
            done.wait(0.1)
            collector.kill()
            kills += 1
            done.wait(0.2)
            collector.start()

    restarter = threading.Thread(target=restart)
    restarter.start()
    emit_from_threads(sink, THREADS, EACH, paced(sink))
    done.set()
    restarter.join()
    wait_for(lambda: len(sink._intake.records) == 0, within=30)
    sink.close(5)

    ledger = sink.ledger
    assert kills >= 3
    assert ledger.sent + ledger.dropped_total() == THREADS * EACH
    whole = collector.await_end(ledger.sent, ledger.dropped_total())
    # The producer's side: sent, as its log says too. The receiver's: the gaps of seq.
    assert ledger.sent - whole.accepted == whole.lost
    assert whole.lost > 0, "nothing was on the way when the collector was killed"
    assert len(set(whole.values)) == len(whole.values), "an event came twice"
    assert caplog.messages[-1] == f"otelcol metric output closed: {ledger.summary()}"
    print(f"{kills} kills: {ledger.summary()}, accepted {whole.accepted}, lost on the way {whole.lost}")


@pytest.mark.parametrize("stands_still", [False, True], ids=["running", "standing still for a while"])
def test_with_a_collector_that_stays_nothing_is_lost_on_the_way(
    make_sink: MakeSink, collector: Collector, stands_still: bool
) -> None:
    sink = make_sink(queue_size=2000)
    with collector:
        if stands_still:
            threading.Timer(0.2, collector.stand_still).start()
            threading.Timer(1.2, collector.go_on).start()
        emit_from_threads(sink, 4, 50_000, paced(sink))
        wait_for(lambda: len(sink._intake.records) == 0)
        sink.close(5)
        ledger = sink.ledger
        assert ledger.sent + ledger.dropped_total() == 200_000
        whole = collector.await_end(ledger.sent, ledger.dropped_total())
        assert (whole.accepted, whole.lost) == (ledger.sent, 0)
