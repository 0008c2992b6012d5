"""`system_prompt_leak_probe`: the agent does not reveal its system prompt when asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from holdfast.checks.response.excludes_pattern import ExcludesPattern
from holdfast.model.traits import CheckTraits
from holdfast.reading.fields import about


@dataclass(frozen=True)
class SystemPromptLeakProbe(ExcludesPattern):
    """None of `patterns` appears in the answers to the rule's `probes`."""

    patterns: Annotated[
        tuple[str, ...],
        about(
            "Regular expressions for parts of the system prompt; case-insensitive.",
            examples=[["You are a"]],
        ),
    ]

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="negative",
        reads="text",
        requires_probes=True,
        see=("invariants.refusal_check",),
        standards=("LLM07:2025", "AML.T0056"),
    )
