"""`llm_as_judge`: a model rates the agent's output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from holdfast.checks.state import judging
from holdfast.checks.state.mock_requests import FIELD, find_field_error, get_mock
from holdfast.checks.state.recorded import build_evidence, decode_evidence, read_evidence
from holdfast.checks.wording import shorten
from holdfast.model.codec import to_builtins
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits, ServiceRead
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.check import Ask, Exhibit
from holdfast.protocols.world import World
from holdfast.reading.fields import about

NOTHING = "nothing to judge"
_SAID = ("agent_output", "replies", "stdout")
"""Inputs that every observation has, with or without a world."""
_SLACK = 1e-9


class Rubric(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Descriptions of passing and failing output."""

    pass_: Annotated[str | None, about("What passes.")] = field(default=None, name="pass")
    fail: Annotated[str | None, about("What fails.")] = None


_NO_RUBRIC = Rubric()


class Opinion(judging.ModelOpinion, frozen=True, omit_defaults=True, kw_only=True):
    """The text that a judge rated, and its votes."""

    input: str = ""
    cut: bool = False
    """The judge saw only a part of the input."""


@dataclass(frozen=True)
class LlmAsJudge:
    """A model scores the output at or above the threshold."""

    model: Annotated[
        str,
        about("A name in models, provider/name, or a known model such as gpt-4o.", min_length=1, examples=["judge"]),
    ]
    criteria: Annotated[str, about("What to evaluate.", min_length=1, examples=["The answer names its source."])]
    input_from: Annotated[
        str, about("agent_output, replies, stdout, workspace, or <service>.<field>.", min_length=1)
    ] = "agent_output"
    rubric: Annotated[Rubric, about("Descriptions of a pass and a fail.")] = _NO_RUBRIC
    temperature: Annotated[
        float | None,
        about(
            "The temperature; default: that of the model's entry, otherwise 0. Not sent to models that take none.",
            ge=0,
            le=2,
        ),
    ] = None
    pass_threshold: Annotated[float, about("The lowest score that passes.", ge=0, le=1)] = 0.5
    votes: Annotated[int, about("The number of votes; the median counts.", ge=1, le=99)] = 1
    max_input: Annotated[
        int, about("The number of bytes shown to the judge; a note says if more was cut.", ge=1, le=judging.LARGEST)
    ] = 65_536

    # No text decides: a model never sees more.
    # Where it forbids something, every reply counts.
    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive",
        reads="state",
        texts=(),
        asks_model=True,
        needs_world=False,
        when_negated=(("input_from", "replies"),),
    )
    codes: ClassVar[Mapping[str, str]] = {
        "judge-above": "The model's rating reaches the threshold.",
        "judge-below": "The model's rating is below the threshold.",
        "judge-cut": "The model's rating is below the threshold, and only a part of the input was shown.",
        "judge-nothing-to-read": "There is nothing to rate.",
    }

    def configured(self) -> CheckTraits:
        """Return the traits with these settings: the agent's answer and output exist without a world."""
        beyond = self.input_from not in _SAID
        service, dot, _ = self.input_from.partition(".")
        services = (ServiceRead("input_from", service, "recorder"),) if dot else ()
        return replace(self.traits, needs_world=beyond, deeds=beyond, services=services)

    async def gather(self, world: World, observation: Observation) -> Evidence:
        if self.input_from in _SAID:
            return Evidence()  # the observation has it
        if self.input_from == "workspace":
            return build_evidence(self._place, judging.read_workspace_input(world, self.max_input))
        service, _, name = self.input_from.partition(".")
        return build_evidence(self._place, judging.read_mock_input(get_mock(world, service), name, self.max_input))

    async def consult(
        self, observation: Observation, control: Observation | None, evidence: Evidence, ask: Ask
    ) -> Evidence:
        judge_input = self._read_input(observation, evidence)
        if not judge_input.text.strip():
            return build_evidence(self._question, Opinion())
        rubric = self.rubric
        # With several replies each is cut at its own end, so the notes must say so.
        several = self.input_from == "replies" and len(observation.turns) > 1
        shown_part = ("the beginning of each reply" if several else "its beginning") if judge_input.cut else ""
        message = judging.build_prompt(judge_input.text, self.criteria, rubric.pass_, rubric.fail, shown=shown_part)
        replies = [
            await judging.request_vote(
                ask, self.model, judging.SYSTEM, message, n, role="judge", temperature=self.temperature
            )
            for n in range(self.votes)
        ]
        part = f"{self.max_input} bytes of the input were shown"
        notes = [f"only {part}, {shown_part}" if several else f"only the first {part}"] if shown_part else []
        notes += [note for advice, _ in replies for note in advice.notes]
        votes, model = tuple(vote for _, vote in replies), replies[0][0].model
        opinion = Opinion(votes=votes, model=model, notes=tuple(dict.fromkeys(notes)), input=judge_input.text)
        return build_evidence(self._question, replace(opinion, cut=judge_input.cut))

    def decide(self, exhibit: Exhibit) -> Finding:
        opinion = read_evidence(exhibit, self._question, Opinion)
        if not opinion.votes:
            what = "the answer" if self.input_from in ("agent_output", "replies") else self.input_from
            return Finding(
                False, f"{NOTHING}: {shorten(what)} is empty", "judge-nothing-to-read", score=0.0, empty=True
            )
        score, nearest = judging.find_median_vote(opinion.votes)
        passed = score >= self.pass_threshold - _SLACK
        compared = f"at least {self.pass_threshold:g}" if passed else f"below {self.pass_threshold:g}"
        of = f"the median of {len(opinion.votes)} votes, " if len(opinion.votes) > 1 else ""
        why = f": {shorten(nearest.reason, 120)}" if nearest.reason else ""
        # A part that was not shown may hold what the rule forbids.
        unseen = opinion.cut and not passed
        part = f" (only {self.max_input} bytes of the input were shown)" if unseen else ""
        code = "judge-above" if passed else "judge-cut" if unseen else "judge-below"
        reason = f"scored {score:.3g}, {of}{compared}{part}{why}"
        details = {**opinion.details, "input": shorten(opinion.input, 400)}
        return Finding(passed, reason, code, score=score, details=details, empty=unseen)

    def problems(self) -> Iterable[tuple[str, str]]:
        if self.input_from in (*_SAID, "workspace"):
            return
        service, dot, name = self.input_from.partition(".")
        if not dot or not service:
            yield "input_from", "expected agent_output, replies, stdout, workspace, or <service>.<field>"
        elif not FIELD.fullmatch(name):
            yield "input_from", f"unknown field {name[:60]!r}: expected request_count, last_request…, requests[N]…"
        elif fault := find_field_error(name):
            yield "input_from", fault

    def _read_input(self, observation: Observation, evidence: Evidence) -> judging.JudgeInput:
        if self.input_from == "agent_output":
            return judging.truncate_input(
                (observation.turns[-1].text if observation.turns else "") or "", self.max_input
            )
        if self.input_from == "replies":
            return judging.join_replies([turn.text or "" for turn in observation.turns], self.max_input)
        if self.input_from == "stdout":
            return judging.truncate_input(observation.output, self.max_input)
        return decode_evidence(evidence, self._place, judging.JudgeInput)

    @property
    def _place(self) -> list[Any]:
        """The source of the text."""
        return ["judge", self.input_from, self.max_input]

    @property
    def _question(self) -> list[Any]:
        """The settings that the votes depend on, without the threshold, which may change later."""
        settings = [self.model, self.criteria, to_builtins(self.rubric), self.temperature, self.votes]
        return [*self._place, *settings, judging.SYSTEM]
