# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of the output: defaults, and everything that is refused.

Pure: no name is resolved, no file or socket is opened.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TypedDict

Resource = dict[str, str | bool | int | float]
"""Resource attributes for every message of the process."""


class Config(TypedDict):
    """A whole configuration, as `validate` returns it: a JSON object."""

    endpoint: str
    """The collector's PULL socket, tcp://host:port or ipc:///absolute/path."""
    queue_size: int
    """Events that wait for delivery at most; the newest beyond it are dropped."""
    flush_interval_ms: int
    """Milliseconds an event waits at most for others to share its message."""
    batch_events: int
    """Events in a message at most."""
    resource: Resource


MAX_QUEUE_SIZE = 1_000_000
MAX_FLUSH_INTERVAL_MS = 60_000
MAX_BATCH_EVENTS = 8192
MAX_IPC_PATH = 107
"""Bytes of a Unix socket's path, from sockaddr_un."""
MAX_RESOURCE_BYTES = 65_536

_HOST = re.compile(r"\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def defaults() -> Config:
    """Return a fresh configuration with every default."""
    return {
        "endpoint": "tcp://127.0.0.1:20280",
        "queue_size": 10_000,
        "flush_interval_ms": 100,
        "batch_events": 512,
        "resource": {},
    }


def validate(config: Mapping[str, object]) -> Config:
    """Return the whole configuration that `config` means, with defaults filled in.

    `config` is read, not kept. Raises ValueError with all problems at once, each
    with its key, its value and what is allowed.
    """
    if not isinstance(config, Mapping):
        raise ValueError(f"otelcol: {_show(config)} must be an object with the keys {_keys(_CHECKS)}")
    whole: dict[str, object] = {**defaults()}
    problems: list[str] = []
    for key, value in config.items():
        check = _CHECKS.get(key) if isinstance(key, str) else None
        if check is None:
            problems.append(f"{_show(key)} is unknown, must be one of {_keys(_CHECKS)}")
            continue
        problems.extend(f"{path}: {problem}" for path, problem in check(key, value))
        whole[key] = dict(value) if isinstance(value, Mapping) else value
    if problems:
        raise ValueError("otelcol: " + "; ".join(problems))
    return whole  # type: ignore[return-value]  # every key was checked above


_Problems = list[tuple[str, str]]
"""Key path and text of each problem."""


def _endpoint(key: str, value: object) -> _Problems:
    allowed = "must be tcp://host:port (one host, port 1 to 65535, IPv6 in brackets) or ipc:///absolute/path"
    if isinstance(value, str):
        if value.startswith("tcp://"):
            host, _, port = value.removeprefix("tcp://").rpartition(":")
            if _HOST.fullmatch(host) and re.fullmatch(r"[0-9]{1,5}", port) and 1 <= int(port) <= 65535:
                return []
        elif value.startswith("ipc:///"):
            path = value.removeprefix("ipc://")
            if "\0" in path or not _is_utf8(path) or not path.strip("/"):
                return [(key, f"{_show(value)} {allowed}")]
            if len(path.encode()) > MAX_IPC_PATH:
                return [(key, f"{_show(value)} has a path over {MAX_IPC_PATH} bytes, the most a socket may have")]
            return []
    return [(key, f"{_show(value)} {allowed}")]


def _whole_number(most: int) -> Callable[[str, object], _Problems]:
    def check(key: str, value: object) -> _Problems:
        # bool is a subclass of int, and no number here.
        if type(value) is int and 1 <= value <= most:
            return []
        return [(key, f"{_show(value)} must be a whole number from 1 to {most}")]

    return check


def _resource(key: str, value: object) -> _Problems:
    if not isinstance(value, Mapping):
        return [(key, f"{_show(value)} must be an object of attributes")]
    problems: _Problems = []
    size = 0
    for name, attribute in value.items():
        if not isinstance(name, str) or not name or not _is_utf8(name):
            problems.append((key, f"name {_show(name)} must be a non-empty string"))
            continue
        size += len(name.encode())
        if isinstance(attribute, str) and _is_utf8(attribute):
            size += len(attribute.encode())
        elif not _is_scalar(attribute):
            allowed = "must be a string, a boolean, a finite number or a 64-bit integer"
            problems.append((f"{key}.{name}", f"{_show(attribute)} {allowed}"))
    if size > MAX_RESOURCE_BYTES:
        problems.append((key, f"{size} bytes of text must be at most {MAX_RESOURCE_BYTES}"))
    return problems


def _is_scalar(value: object) -> bool:
    if type(value) is int:
        return -(2**63) <= value < 2**63
    return isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


def _keys(checks: Mapping[str, object]) -> str:
    return ", ".join(checks)


_CHECKS: dict[str, Callable[[str, object], _Problems]] = {
    "endpoint": _endpoint,
    "queue_size": _whole_number(MAX_QUEUE_SIZE),
    "flush_interval_ms": _whole_number(MAX_FLUSH_INTERVAL_MS),
    "batch_events": _whole_number(MAX_BATCH_EVENTS),
    "resource": _resource,
}
