"""Stage 5, Verdicts to Score: decides cells as results arrive, then computes one number and a verdict."""

from holdfast.score.cell import count_needed, decide_prompt
from holdfast.score.intervals import compute_effective_n, compute_pass_hat, compute_wilson
from holdfast.score.resilience import ScoreOptions, compute_resilience
from holdfast.score.tally import Tally

__all__ = [
    "ScoreOptions",
    "Tally",
    "compute_effective_n",
    "compute_pass_hat",
    "compute_resilience",
    "compute_wilson",
    "count_needed",
    "decide_prompt",
]
