"""The overall score of a file: its parts, each with its verdict and weight."""

from __future__ import annotations

from msgspec import Struct

from holdfast.model.run_warning import RunWarning
from holdfast.model.score import Interval, MutationScore
from holdfast.model.spec import Part


class PartResult(Struct, frozen=True, omit_defaults=True):
    """The result of one part, or why it did not run."""

    part: Part
    score: float | None = None
    """0-100; None if nothing was decided, it did not run, or cases alone decide it."""
    best: float | None = None
    """The score if every harness error had passed."""
    weight: float = 0.0
    """The configured weight; 0: only the verdict counts."""
    share: float = 0.0
    """Its relative weight among the parts that have a score."""
    passed: bool = False
    exit_code: int = 0
    reasons: tuple[str, ...] = ()
    reason_codes: tuple[str, ...] = ()
    """The codes of these reasons; empty if the part passed."""
    interval: Interval | None = None
    mutation: MutationScore | None = None
    run: str = ""
    """The id of its run: `0007/contract`."""
    page: str = ""
    """The path of its report, relative to the folder of the whole run."""
    trials: int = 0
    said: str = ""
    """The result in a few words: `3 of 4 cases passed`."""
    skipped: str = ""
    """Why it did not run; empty if it did."""

    @property
    def ran(self) -> bool:
        return not self.skipped


class Overall(Struct, frozen=True, omit_defaults=True):
    """Every part, the weighted mean of the scores, and the verdict."""

    run: str
    score: float | None
    """0-100, two decimals; None if no part has a score."""
    passed: bool
    exit_code: int
    parts: tuple[PartResult, ...]
    reasons: tuple[str, ...] = ()
    min_score: float | None = None
    notes: tuple[str, ...] = ()
    """Findings that do not decide the verdict: regressions, a baseline."""
    warnings: tuple[RunWarning, ...] = ()
    """The warnings of all parts, without repeats."""
    spec_path: str = ""
    name: str = ""
    seed: int = 0
    started: str = ""
    duration_s: float = 0.0
    shard: str = ""
    """`2/4`: one shard only, and `merge` decides; empty: the complete run."""
    seal: str = ""
    """In `overall.json`: a digest of everything else."""
