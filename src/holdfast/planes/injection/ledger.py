"""The ledger of one trial: every fault that fired, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from holdfast.model.observation import FaultMet

Record: TypeAlias = Callable[[FaultMet], None]

LEDGER_LIMIT = 1000
"""Limit on listed firings per fault and trial: enough to see what happened."""
_NO_MORE = f"only the first {LEDGER_LIMIT} firings are listed"


class Ledger:
    """Records firings and their outcomes."""

    def __init__(self, record: Record, amend: Record) -> None:
        self._record = record
        self._amend = amend
        self._entries: dict[tuple[int, str], int] = {}

    def record(self, met: FaultMet) -> None:
        """Record a firing. The number of entries is bounded, even if the agent retries forever."""
        kind = (met.index, met.effect)
        self._entries[kind] = count = self._entries.get(kind, 0) + 1
        # The limit applies to each fault and effect separately, so a fault that never takes effect cannot push the
        # entries of one that does out of the ledger.
        if count == LEDGER_LIMIT:
            met = replace(met, note=f"{met.note}; {_NO_MORE}" if met.note else _NO_MORE)
        if count <= LEDGER_LIMIT:
            self._record(met)

    def amend(self, met: FaultMet) -> None:
        """Record the outcome of a firing. If it was not met, another one may be listed."""
        if met.effect != "met":
            kind = (met.index, "met")
            self._entries[kind] = self._entries.get(kind, 1) - 1
        self._amend(met)
