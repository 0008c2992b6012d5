"""The overall score of a file: its parts, each with its verdict and its share."""

from __future__ import annotations

from msgspec import Struct

from holdfast.model.run_warning import RunWarning
from holdfast.model.score import Interval, MutationScore
from holdfast.model.spec import Part


class PartResult(Struct, frozen=True, omit_defaults=True):
    """What one part came to, or why it did not run."""

    part: Part
    score: float | None = None
    """0-100; None: nothing was decided, it did not run, or cases alone decide it."""
    best: float | None = None
    """The score if every error of ours had passed."""
    weight: float = 0.0
    """As configured; 0: it has none, and only its verdict counts."""
    share: float = 0.0
    """Its weight among the parts that have a score."""
    passed: bool = False
    exit_code: int = 0
    reasons: tuple[str, ...] = ()
    interval: Interval | None = None
    mutation: MutationScore | None = None
    run: str = ""
    """The id of its run: `0007/contract`."""
    page: str = ""
    """Its report, relative to the whole run's folder."""
    trials: int = 0
    said: str = ""
    """What it came to, in a few words: `3 of 4 cases passed`."""
    skipped: str = ""
    """Why it did not run; empty: it did."""

    @property
    def ran(self) -> bool:
        return not self.skipped


class Overall(Struct, frozen=True, omit_defaults=True):
    """Every part, the weighted mean of those that have a score, and the verdict."""

    run: str
    score: float | None
    """0-100, two decimals; None: no part has a score."""
    passed: bool
    exit_code: int
    parts: tuple[PartResult, ...]
    reasons: tuple[str, ...] = ()
    min_score: float | None = None
    notes: tuple[str, ...] = ()
    """What was compared and found beside the verdict: regressions, a baseline."""
    warnings: tuple[RunWarning, ...] = ()
    """Those of all parts, each once."""
    spec_path: str = ""
    name: str = ""
    seed: int = 0
    started: str = ""
    duration_s: float = 0.0
    shard: str = ""
    """`2/4`: it is of one share, and `merge` decides; empty: of all."""
    seal: str = ""
    """In `overall.json`: a digest of all the rest."""
