# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Discovery and registration, as the engine does them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import PACKAGE, Engine

import tokenspeed_otelcol


def test_the_entry_point_registers_the_output(engine: Engine) -> None:
    engine.plugins.ensure_loaded()
    assert engine.plugins.plugins["otelcol"].registrations == [("metric_reporter", "otelcol")]
    reporter = engine.registry.reporters["otelcol"]
    assert reporter.validate is tokenspeed_otelcol.validate
    assert reporter.create_sink is tokenspeed_otelcol.create_sink
    assert reporter.start_node is None


def test_it_registers_once_a_process(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = tokenspeed_otelcol.register

    def register() -> None:
        calls.append(1)
        real()

    monkeypatch.setattr(tokenspeed_otelcol, "register", register)
    for _ in range(3):
        engine.plugins.ensure_loaded()
    assert len(calls) == 1


def run(code: str, *paths: Path) -> str:
    """Run code in a fresh interpreter that finds the package, the stand-in for the engine, and `paths`."""
    search = [str(path) for path in (PACKAGE / "src", PACKAGE / "tests", PACKAGE / "tests" / "stub", *paths)]
    program = f"import sys; sys.path[:0] = {search!r}\n" + textwrap.dedent(code)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_registration_and_validation_have_no_side_effect(installed: Path) -> None:
    run(
        """
        import os, threading
        before = set(os.listdir("/proc/self/fd"))
        from tokenspeed.runtime.metrics.outputs import Launcher
        launcher = Launcher(reporter_names=["otelcol"])
        assert launcher.producer_configs["otelcol"]["queue_size"] == 10000
        assert not {"zmq", "msgspec", "tokenspeed_otelcol.sink"} & set(sys.modules), "heavy import"
        assert threading.active_count() == 1
        assert set(os.listdir("/proc/self/fd")) == before
        launcher.close(1.0)
        """,
        installed,
    )


def test_a_sink_without_events_has_no_thread_and_no_socket(installed: Path) -> None:
    run(
        """
        import os, threading
        import tokenspeed_otelcol
        import zmq, msgspec
        before = set(os.listdir("/proc/self/fd"))
        sink = tokenspeed_otelcol.create_sink({})
        assert threading.active_count() == 1
        assert set(os.listdir("/proc/self/fd")) == before
        sink.close(1.0)
        assert threading.active_count() == 1
        """,
        installed,
    )


def test_with_metrics_disabled_nothing_is_loaded(engine: Engine) -> None:
    launcher = engine.outputs.Launcher(enable_metrics=False, reporter_names=["otelcol"])
    assert engine.registry.reporters == {}
    assert launcher.producer_configs == {}


def test_without_a_selection_the_output_stays_unused(engine: Engine) -> None:
    assert engine.outputs.Launcher().producer_configs == {}


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_api_version_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch, version: object) -> None:
    monkeypatch.setattr(engine.registry, "METRIC_REPORTER_API_VERSION", version)
    with pytest.warns(UserWarning, match=f"METRIC_REPORTER_API_VERSION is {version!r}, must be 1"):
        engine.plugins.ensure_loaded()
    assert engine.registry.reporters == {}


def test_an_engine_without_the_api_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenspeed.runtime.metrics.registry", None)
    with pytest.raises(RuntimeError, match="this TokenSpeed has no metric reporter API"):
        tokenspeed_otelcol.register()


def test_a_disabled_plugin_that_is_selected_fails_startup(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENSPEED_DISABLE_PLUGINS", "other, otelcol")
    with pytest.raises(ValueError, match=r"unknown metric reporters: \['otelcol'\]"):
        engine.outputs.Launcher(reporter_names=["otelcol"])


def registers(engine: Engine, name: str, *, override: bool = False) -> None:
    engine.registry.register_metric_reporter(
        name,
        validate=lambda config: config,
        create_sink=lambda config: None,
        start_node=None,
        override=override,
    )


def test_a_taken_name_is_not_overridden(engine: Engine) -> None:
    """Loaded in the order of names: `a-rival` comes before `otelcol`."""
    engine.install("a-rival", lambda: registers(engine, "otelcol"))
    with pytest.warns(UserWarning, match="plugin 'otelcol' failed to register: .* registered already"):
        engine.plugins.ensure_loaded()
    assert engine.registry.reporters["otelcol"].create_sink is not tokenspeed_otelcol.create_sink


def test_another_plugin_may_override_the_output(engine: Engine) -> None:
    engine.install("z-successor", lambda: registers(engine, "otelcol", override=True))
    engine.plugins.ensure_loaded()
    assert engine.registry.reporters["otelcol"].create_sink is not tokenspeed_otelcol.create_sink


def test_a_failed_override_gives_the_output_back(engine: Engine) -> None:
    def register() -> None:
        registers(engine, "otelcol", override=True)
        registers(engine, "prometheus", override=True)

    engine.install("z-broken", register)
    with pytest.warns(UserWarning, match="'z-broken' failed to register: .*'prometheus' is reserved"):
        engine.plugins.ensure_loaded()
    assert engine.registry.reporters["otelcol"].create_sink is tokenspeed_otelcol.create_sink


def test_a_registration_that_fails_later_is_rolled_back(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def register() -> None:
        tokenspeed_otelcol.register()
        raise RuntimeError("no such model")

    monkeypatch.setenv("TOKENSPEED_DISABLE_PLUGINS", "otelcol")
    engine.install("bundle", register)
    with pytest.warns(UserWarning, match="'bundle' failed to register: no such model"):
        engine.plugins.ensure_loaded()
    assert engine.registry.reporters == {}
    with pytest.raises(ValueError, match="unknown metric reporters"):
        engine.outputs.Launcher(reporter_names=["otelcol"])
