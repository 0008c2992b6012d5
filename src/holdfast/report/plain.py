"""A listener for pipes and logs: one line a finished cell, nothing redrawn."""

from __future__ import annotations

import sys
from typing import TextIO

from holdfast.model.events import CellDecided, Event, RunStarted, Warned
from holdfast.model.score import Cell
from holdfast.report.progress import header
from holdfast.report.safe import ascii_only, one_line
from holdfast.report.wording import SIGNS, column, format_warning, marks, tally

_WORD = max(map(len, SIGNS))
_STARTS = {outcome: f"{sign} {outcome:<{_WORD}}  " for outcome, sign in SIGNS.items()}


class Plain:
    """Writes the header, then each cell as it is decided; warnings go to `errors`."""

    def __init__(self, stream: TextIO, *, errors: TextIO | None = None, unicode: bool = True) -> None:
        self._stream = stream
        self._errors = sys.stderr if errors is None else errors
        self._unicode = unicode
        self._sessions = False

    def __call__(self, event: Event) -> None:
        if isinstance(event, CellDecided):
            if not self._sessions:  # a session may prove nothing though each of its rules holds
                self._write(self._stream, line(event.cell))
        elif isinstance(event, RunStarted):
            self._sessions = event.spec.part == "replay"
            self._write(self._stream, one_line(header(event)))
            self._stream.flush()
        elif isinstance(event, Warned):
            self._write(self._errors, format_warning(event.warning))

    def close(self) -> None:
        """Everything written is on its way."""
        self._stream.flush()

    def _write(self, stream: TextIO, text: str) -> None:
        stream.write((text if self._unicode else ascii_only(text)) + "\n")


def line(cell: Cell) -> str:
    """`✘ fail      always-cite-source  llm-degraded  0/2, flaky  nothing matches …`."""
    start = f"{_STARTS[cell.outcome]}{one_line(cell.invariant)}  {one_line(column(cell))}"
    facts = ", ".join(filter(None, (tally(cell), *marks(cell))))
    reason = "" if cell.outcome in ("pass", "n/a") else one_line(cell.reason)
    return "  ".join(filter(None, (start, facts, reason))) if facts or reason else start
