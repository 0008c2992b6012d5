"""Stage 4, Observations to Verdicts: pure, and a failing check never makes it raise."""

from holdfast.judge.judge import Judge

__all__ = ["Judge"]
