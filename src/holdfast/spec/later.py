"""Checks that this release reads but cannot run: those that ask a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec import Struct, field

from holdfast.reading.fields import about


class Rubric(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What passing and failing look like."""

    pass_: Annotated[str | None, about("What passes.")] = field(default=None, name="pass")
    fail: Annotated[str | None, about("What fails.")] = None


class LlmAsJudge(Struct, frozen=True, kw_only=True):
    """A model rates the output at or above the threshold."""

    model: Annotated[str, about("A name in models, provider/name, or a known model.", min_length=1)]
    criteria: Annotated[str, about("What to evaluate.", min_length=1)]
    input_from: Annotated[str, about("agent_output, stdout, workspace, or <service>.<field>.", min_length=1)] = (
        "agent_output"
    )
    rubric: Annotated[Rubric, about("Shown to the judge.")] = Rubric()
    temperature: Annotated[float, about("Sent to the model.", ge=0, le=2)] = 0
    pass_threshold: Annotated[float, about("A score from here on passes.", ge=0, le=1)] = 0.5
    votes: Annotated[int, about("Ask so often and take the median.", ge=1, le=99)] = 1
    max_input: Annotated[int, about("Bytes of input shown to the judge.", ge=1)] = 65_536

    def problems(self) -> Iterable[tuple[str, str]]:
        if self.input_from not in ("agent_output", "stdout", "workspace") and "." not in self.input_from:
            yield "input_from", "expected agent_output, stdout, workspace, or <service>.<field>"


CHECKS: Mapping[str, type[Struct]] = {"llm_as_judge": LlmAsJudge}
