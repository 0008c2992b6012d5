"""Stage 4, Observations to Verdicts: pure, and never raises on account of a check."""

from holdfast.judge.endings import describe
from holdfast.judge.judge import Judge
from holdfast.plan.checks import make_check, needs_control

__all__ = ["Judge", "describe", "make_check", "needs_control"]
