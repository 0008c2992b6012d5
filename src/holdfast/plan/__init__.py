"""Stage 2, Spec to Trials: pure, lazy, and always in the same order."""

from holdfast.plan.checks import make_check, traits_of
from holdfast.plan.ids import agent_json, identity
from holdfast.plan.layout import Lazy
from holdfast.plan.matrix import CellKey, Plan, control_trial, plan
from holdfast.plan.options import RunOptions
from holdfast.plan.planners import FailFast, Once, Rounds
from holdfast.plan.select import EVERYTHING, Select

__all__ = [
    "EVERYTHING",
    "CellKey",
    "FailFast",
    "Lazy",
    "Once",
    "Plan",
    "Rounds",
    "RunOptions",
    "Select",
    "agent_json",
    "control_trial",
    "identity",
    "make_check",
    "plan",
    "traits_of",
]
