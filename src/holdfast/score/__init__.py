"""Stage 5, Verdicts to Score: decides cells as results arrive, then computes one number and a verdict."""

from holdfast.score.cell import needed, settle
from holdfast.score.intervals import kish, pass_hat_k, wilson
from holdfast.score.resilience import resilience
from holdfast.score.ruling import ScoreOptions
from holdfast.score.tally import Tally

__all__ = ["ScoreOptions", "Tally", "kish", "needed", "pass_hat_k", "resilience", "settle", "wilson"]
