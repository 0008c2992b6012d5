"""What models said of a run's trials: `evidence-0.jsonl`, so that a stored run is judged without asking again."""

from __future__ import annotations

from msgspec import Struct

from holdfast.model.codec import decoder
from holdfast.model.world import Evidence
from holdfast.store.record_lines import records
from holdfast.store.rundir import RunDir


class Consulted(Struct, frozen=True, omit_defaults=True):
    """What was said for one rule of one trial."""

    trial: str
    invariant: str
    evidence: Evidence


_consulted = decoder(Consulted)


class StoredAdvice:
    """What a stored run has of it: only where it lies is held in memory."""

    def __init__(self, run: RunDir) -> None:
        self._path = run.evidence()
        found = records(self._path, _consulted.decode, _consulted.decode_lines)
        self._places = {(one.trial, one.invariant): start for start, one in found}  # the last of several counts

    def get(self, trial: str, rule: str) -> Evidence | None:
        """What was said for a rule of a trial; None if nobody was asked, or could be."""
        start = self._places.get((trial, rule))
        if start is None:
            return None
        with open(self._path, "rb") as file:
            file.seek(start)
            return _consulted.decode(file.readline()).evidence
