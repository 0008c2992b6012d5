"""Stage 4, Observations to Verdicts: pure, and never raises on account of a check."""

from holdfast.judge.judge import Judge

__all__ = ["Judge"]
