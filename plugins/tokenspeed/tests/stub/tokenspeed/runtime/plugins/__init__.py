# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the installed plugins and lets each register, once a process."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import entry_points

GROUP = "tokenspeed.plugins"
DISABLE = "TOKENSPEED_DISABLE_PLUGINS"
"""Names of entry points that are not loaded, separated by commas."""


@dataclass
class PluginInfo:
    name: str
    registrations: list[tuple[str, str]] = field(default_factory=list)
    undo: list[Callable[[], None]] = field(default_factory=list)


plugins: dict[str, PluginInfo] = {}
_loading = threading.RLock()
_loaded = False
_recording: PluginInfo | None = None


def record_external(kind: str, name: str, undo: Callable[[], None]) -> None:
    """Let a registration share the fate of the plugin that is being loaded."""
    if _recording is not None:
        _recording.registrations.append((kind, name))
        _recording.undo.append(undo)


def ensure_loaded() -> None:
    """Load every plugin in the order of names; a second call does nothing.

    A plugin that raises is taken back whole, and startup goes on with a warning.
    """
    global _loaded, _recording
    with _loading:
        if _loaded:
            return
        _loaded = True
        disabled = {name.strip() for name in os.environ.get(DISABLE, "").split(",")}
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
            if entry.name in disabled:
                continue
            _recording = PluginInfo(entry.name)
            try:
                entry.load()()
                plugins[entry.name] = _recording
            except Exception as error:
                for undo in reversed(_recording.undo):
                    undo()
                warnings.warn(f"plugin {entry.name!r} failed to register: {error}", stacklevel=2)
            finally:
                _recording = None
