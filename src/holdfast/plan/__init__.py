"""Stage 2, Spec to Trials: pure, lazy, and always in the same order."""

from holdfast.plan.checks import get_traits, make_check
from holdfast.plan.layout import LazySequence, encode_agent, encode_identity
from holdfast.plan.matrix import (
    CellKey,
    FailFastPlanner,
    OncePlanner,
    Plan,
    RoundsPlanner,
    build_control_trial,
    build_plan,
)
from holdfast.plan.options import RunOptions
from holdfast.plan.select import EVERYTHING, Select

__all__ = [
    "EVERYTHING",
    "CellKey",
    "FailFastPlanner",
    "LazySequence",
    "OncePlanner",
    "Plan",
    "RoundsPlanner",
    "RunOptions",
    "Select",
    "build_control_trial",
    "build_plan",
    "encode_agent",
    "encode_identity",
    "get_traits",
    "make_check",
]
