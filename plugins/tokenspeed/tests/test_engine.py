# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""The output in the engine's hands: startup, sinks, shutdown."""

from __future__ import annotations

import json
import logging
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from collector import Collector
from conftest import Engine, Pull

from tokenspeed_otelcol.sink import Sink


def start(engine: Engine, config: dict[str, object], *names: str) -> Any:
    text = json.dumps({"otelcol": config})
    return engine.outputs.Launcher(reporter_names=[*names, "otelcol"], config_text=text)


def event(engine: Engine, value: float = 1.0) -> Any:
    return engine.events.MetricEvent(time.time_ns(), "tokenspeed:num_requests_running", "set", value, {"dp_rank": "0"})


def test_without_an_entry_in_the_file_all_defaults_apply(engine: Engine) -> None:
    launcher = engine.outputs.Launcher(reporter_names=["otelcol"])
    assert launcher.producer_configs["otelcol"]["endpoint"] == "tcp://127.0.0.1:20280"


@pytest.mark.parametrize(
    ("text", "names", "problem"),
    [
        ('{"otelcol": {"end_point": "tcp://a:1"}}', ["otelcol"], "'end_point' is unknown"),
        ('{"otelcol": {"queue_size": 0}}', ["otelcol"], "queue_size: 0 must be"),
        ('{"otelcol": {"queue_size": 1, "queue_size": 2}}', ["otelcol"], "duplicate key"),
        ('{"otelcol": {}, "otelcol": {}}', ["otelcol"], "duplicate key"),
        ('{"otelcol": {}}', ["prometheus"], "configuration for unselected metric reporters"),
        ('{"otelcol": []}', ["otelcol"], "must be an object"),
        ("{}", ["otelcol", "otel"], "unknown metric reporters"),
    ],
)
def test_a_wrong_configuration_fails_startup(engine: Engine, text: str, names: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        engine.outputs.Launcher(reporter_names=names, config_text=text)


def test_the_collectors_of_a_process_share_one_sink(engine: Engine, endpoint: str, pull: Pull) -> None:
    launcher = start(engine, {"endpoint": endpoint, "resource": {"zone": "a"}})
    collectors = [
        threading.Thread(target=lambda: [launcher.sinks.emit(event(engine)) for _ in range(100)]) for _ in range(8)
    ]
    for collector in collectors:
        collector.start()
    for collector in collectors:
        collector.join()
    launcher.close(5.0)
    messages = pull.messages_to_end(800, 0)
    assert len({message.producer for message in messages}) == 1
    assert sum(len(message.events) for message in messages) == 800
    assert all(message.resource == {"zone": "a"} for message in messages)


class Other:
    """Another output: keeps what happens to it."""

    def __init__(self, story: list[str], name: str, raises: bool = False) -> None:
        self.story, self.name, self.raises = story, name, raises

    def register(self, engine: Engine, *, node: bool = False) -> None:
        def start_node(config: object) -> Any:
            return SimpleNamespace(producer_config={}, close=lambda timeout: self.note("node closed"))

        engine.registry.register_metric_reporter(
            self.name,
            validate=dict,
            create_sink=lambda config: self,
            start_node=start_node if node else None,
            override=False,
        )

    def note(self, what: str) -> None:
        self.story.append(f"{self.name} {what}")

    def emit(self, event: object) -> None:
        self.note("emit")
        if self.raises:
            raise RuntimeError("broken output")

    def close(self, timeout: float) -> None:
        self.note("closed")
        if self.raises:
            raise RuntimeError("broken output")


def test_a_raising_output_does_not_stop_this_one(
    engine: Engine, endpoint: str, pull: Pull, caplog: pytest.LogCaptureFixture
) -> None:
    story: list[str] = []
    broken = Other(story, "broken", raises=True)
    engine.install("broken", lambda: broken.register(engine))
    launcher = start(engine, {"endpoint": endpoint}, "broken")
    for _ in range(10):
        launcher.sinks.emit(event(engine))
    launcher.close(5.0)
    assert story == ["broken emit", "broken closed"]
    messages = pull.messages_to_end(10, 0)
    assert sum(len(message.events) for message in messages) == 10


def test_the_launcher_closes_its_sinks_before_what_the_node_shares(
    engine: Engine, endpoint: str, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    story: list[str] = []
    relay = Other(story, "relay")
    engine.install("relay", lambda: relay.register(engine, node=True))
    launcher = start(engine, {"endpoint": endpoint}, "relay")
    launcher.sinks.emit(event(engine))
    real = Sink.close

    def close(sink: Sink, timeout: float | None) -> None:
        real(sink, timeout)
        story.append("otelcol closed")

    monkeypatch.setattr(Sink, "close", close)
    launcher.close(5.0)
    assert story == ["relay emit", "relay closed", "otelcol closed", "relay node closed"]
    assert sum(len(message.events) for message in pull.messages_to_end(1, 0)) == 1


def test_close_keeps_the_budget_that_processes_share(engine: Engine, endpoint: str, collector: Collector) -> None:
    """No collector, a queue with events, and an output after ours that wants its time too."""
    story: list[str] = []
    late = Other(story, "late")
    engine.install("late", lambda: late.register(engine))
    launcher = engine.outputs.Launcher(
        reporter_names=["otelcol", "late"], config_text=json.dumps({"otelcol": {"endpoint": endpoint}})
    )
    for _ in range(100):
        launcher.sinks.emit(event(engine))
    before = time.monotonic()
    launcher.close(0.2)
    assert time.monotonic() - before < 0.3
    assert story[-1] == "late closed"


def test_the_closing_line_tells_what_became_of_all_events(
    engine: Engine, endpoint: str, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tokenspeed_otelcol")
    with collector:
        launcher = start(engine, {"endpoint": endpoint})
        sink = launcher.sinks
        for value in range(1000):
            sink.emit(event(engine, value))
        launcher.close(5.0)
        launcher.close(5.0)
        sink.emit(event(engine))
        assert sorted(collector.await_end(1000, 0).values) == list(range(1000))
    lines = [record.getMessage() for record in caplog.records if record.name == "tokenspeed_otelcol"]
    assert lines == ["otelcol metric output closed: sent 1000, dropped 0"]
