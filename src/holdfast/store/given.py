"""The verdicts of a stored run by trial: only where they lie is held in memory."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path

from holdfast.model.codec import decoder
from holdfast.model.verdict import Verdict
from holdfast.store.line_reader import LineReader
from holdfast.store.record_lines import records

_verdicts = decoder(Verdict)


class GivenVerdicts:
    """A file of verdicts; `number` gives each trial its number, of which there are `trials`. Close it when done."""

    def __init__(self, path: Path, number: Callable[[str], int | None], trials: int) -> None:
        self._last = array("l", [-1]) * trials
        """By trial: the last verdict on it."""
        self._before = array("l")
        """By verdict: the one before it on the same trial."""
        self._starts = array("Q")
        for start, verdict in records(path, _verdicts.decode, _verdicts.decode_lines):
            at = number(verdict.trial)
            if at is not None:
                self._before.append(self._last[at])
                self._last[at] = len(self._starts)
                self._starts.append(start)
        self._lines = LineReader(path) if self._starts else None

    def of(self, trial: int) -> dict[str, Verdict]:
        """The verdicts on a trial by rule; the last of several counts."""
        found: list[Verdict] = []
        at = self._last[trial]
        while at >= 0:
            assert self._lines is not None
            found.append(_verdicts.decode(self._lines.line(self._starts[at])))
            at = self._before[at]
        return {verdict.invariant: verdict for verdict in reversed(found)}

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
