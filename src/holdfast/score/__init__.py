"""Stage 5, Verdicts to Score: decides cells as results arrive, then computes one number and a verdict."""

from holdfast.score.resilience import ScoreOptions, score_contract
from holdfast.score.tally import Tally

__all__ = ["ScoreOptions", "Tally", "score_contract"]
