# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""When to say something about drops and faults, and what. Pure: time comes as an argument."""

from __future__ import annotations

from collections.abc import Mapping

INTERVAL = 10.0
"""Seconds between two lines about the same thing at least."""


class Report:
    """At most one line a kind and INTERVAL; what was not said is in the next one."""

    def __init__(self) -> None:
        self._said_at: dict[str, float] = {}
        self._said: dict[str, int] = {}  # the total of a reason in its last line
        self._unsaid: dict[str, int] = {}  # faults of a kind since its last line

    def drops(self, now: float, dropped: Mapping[str, int], hints: Mapping[str, str]) -> list[str]:
        """Return lines about the reasons in `hints` whose total rose since their last line.

        `now` is in seconds of any clock that does not go back; `hints` tells about each reason
        what a reader needs to know.
        """
        lines = []
        for reason, hint in hints.items():
            new = dropped[reason] - self._said.get(reason, 0)
            if new > 0 and self._is_due(now, reason):
                self._said[reason] = dropped[reason]
                lines.append(f"dropped {new} events ({reason}, {dropped[reason]} since start): {hint}")
        return lines

    def fault(self, now: float, kind: str, text: str) -> list[str]:
        """Return a line about a fault that may come again and again, or none."""
        unsaid = self._unsaid.get(kind, 0)
        if not self._is_due(now, kind):
            self._unsaid[kind] = unsaid + 1
            return []
        self._unsaid[kind] = 0
        return [f"{kind}: {text}" + (f" ({unsaid} more were not shown)" if unsaid else "")]

    def _is_due(self, now: float, kind: str) -> bool:
        if now - self._said_at.get(kind, -INTERVAL) < INTERVAL:
            return False
        self._said_at[kind] = now
        return True
