# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib
import itertools
import os
import socket
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import zmq
from collector import Collector, Message, read_message

import tokenspeed_otelcol
from tokenspeed_otelcol.sink import Sink

PACKAGE = Path(__file__).parent.parent

long = pytest.mark.skipif(os.environ.get("FPM_TEST_LONG") != "1", reason="takes long; FPM_TEST_LONG=1 runs it")


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def endpoint(port: int) -> str:
    return f"tcp://127.0.0.1:{port}"


@pytest.fixture
def collector(endpoint: str, tmp_path: Path) -> Iterator[Collector]:
    """A collector that was not started yet."""
    peer = Collector(endpoint, tmp_path)
    yield peer
    peer.__exit__()


@pytest.fixture
def make_sink(endpoint: str) -> Iterator[Callable[..., Sink]]:
    """Makes sinks for `endpoint`, with a short flush interval; what is left open is closed."""
    sinks = []

    def make(**config: object) -> Sink:
        sink = tokenspeed_otelcol.create_sink({"endpoint": endpoint, "flush_interval_ms": 10, **config})
        sinks.append(sink)
        return sink

    yield make
    for sink in sinks:
        sink.close(0)


class Pull:
    """A PULL socket in this process, for tests that look at messages whole."""

    def __init__(self, endpoint: str) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.PULL)
        self._socket.setsockopt(zmq.IPV6, 1)
        self._socket.bind(endpoint)

    def message(self, within: float = 5) -> Message:
        assert self._socket.poll(round(within * 1000)), "no message came"
        return read_message(self._socket.recv_multipart())

    def messages_to_end(self, sent: int, dropped: int) -> list[Message]:
        """Return messages up to the one without events that tells these final numbers."""
        messages = [self.message()]
        while messages[-1].events or (messages[-1].seq, messages[-1].dropped_total) != (sent, dropped):
            messages.append(self.message())
        return messages

    def close(self) -> None:
        self._socket.close(0)
        self._context.term()


@pytest.fixture
def pull(endpoint: str) -> Iterator[Pull]:
    socket = Pull(endpoint)
    yield socket
    socket.close()


def wait_for(condition: Callable[[], bool], within: float = 10) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the metadata that an installer writes for this package, from pyproject.toml."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    site = tmp_path_factory.mktemp("site")
    write_metadata(site, project["name"], project["version"], project["entry-points"]["tokenspeed.plugins"])
    return site


def write_metadata(site: Path, name: str, version: str, plugins: dict[str, str]) -> None:
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"{key} = {value}" for key, value in plugins.items()]
    (info / "entry_points.txt").write_text("\n".join(["[tokenspeed.plugins]", *lines, ""]))


_numbers = itertools.count()


class Engine:
    """The engine's modules as a process has them that has just started."""

    def __init__(self, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._site = site
        self._monkeypatch = monkeypatch
        monkeypatch.syspath_prepend(site)
        for name in [name for name in sys.modules if name.split(".")[0] == "tokenspeed"]:
            monkeypatch.delitem(sys.modules, name)
        self.plugins = importlib.import_module("tokenspeed.runtime.plugins")
        self.registry = importlib.import_module("tokenspeed.runtime.metrics.registry")
        self.events = importlib.import_module("tokenspeed.runtime.metrics.events")
        self.outputs = importlib.import_module("tokenspeed.runtime.metrics.outputs")

    def install(self, name: str, register: Callable[[], None]) -> None:
        """Install another plugin, with the entry point `name`."""
        module = ModuleType(f"plugin_of_a_test_{next(_numbers)}")
        module.register = register  # type: ignore[attr-defined]
        self._monkeypatch.setitem(sys.modules, module.__name__, module)
        write_metadata(self._site, f"plugin-{name}", "1", {name: f"{module.__name__}:register"})
        importlib.invalidate_caches()


@pytest.fixture
def engine(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.syspath_prepend(installed)
    site = tmp_path / "site"
    site.mkdir()
    yield Engine(site, monkeypatch)
    for name in [name for name in sys.modules if name.split(".")[0] == "tokenspeed"]:
        del sys.modules[name]
