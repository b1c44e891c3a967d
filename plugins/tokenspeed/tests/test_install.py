# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""The package as an operator installs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from collector import Collector
from conftest import PACKAGE, long

LAUNCH = """
import json, sys, time
from tokenspeed.runtime.metrics.events import MetricEvent
from tokenspeed.runtime.metrics.outputs import Launcher
import tokenspeed_otelcol
assert tokenspeed_otelcol.__file__.startswith(sys.argv[1]), tokenspeed_otelcol.__file__
launcher = Launcher(reporter_names=["otelcol"], config_text=json.dumps({"otelcol": {"endpoint": sys.argv[2]}}))
launcher.sinks.emit(MetricEvent(time.time_ns(), "tokenspeed:num_requests_total", "inc", 1, {"app_key": None}))
launcher.close(5.0)
"""


def test_pip_installs_a_plugin_that_the_engine_finds(collector: Collector, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--target", target, source], check=True, timeout=300)
    (info,) = target.glob("tokenspeed_otelcol-*.dist-info")
    assert "tokenspeed.plugins" in (info / "entry_points.txt").read_text()
    assert (target / "tokenspeed_otelcol" / "py.typed").exists()
    assert not (target / "tests").exists()
    with collector:
        subprocess.run(
            [sys.executable, "-c", LAUNCH, target, collector.endpoint],
            env={"PYTHONPATH": f"{target}:{PACKAGE / 'tests' / 'stub'}"},
            cwd=tmp_path,
            check=True,
            timeout=60,
        )
        collector.await_end(1, 0)


@long
def test_an_emit_costs_less_than_two_microseconds() -> None:
    subprocess.run([sys.executable, PACKAGE / "bench" / "emit.py", "--check"], check=True, timeout=300)
