"""One rule prepared for judging: its check, reversed by `negate`; and the words for a missing answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast.checks.trace.calls import find_unreadable_call, get_delivery, get_url
from holdfast.errors import HarnessError, HoldfastError, NothingToJudge, format_error_place
from holdfast.model.endings import describe_ending
from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.observation import Exhibit, Observation, Turn
from holdfast.model.plain_text import is_blank, iter_readings, locate_spans, to_typed_text
from holdfast.model.spec import Invariant
from holdfast.model.trace import EVENTS_KEPT
from holdfast.model.verdict import Finding, Judgement
from holdfast.plan.checks import is_usable, make_check
from holdfast.protocols.check import check_traits


def has_text(turn: Turn) -> bool:
    """Return whether there is anything to read besides whitespace."""
    return not is_blank(turn.text or "")


if TYPE_CHECKING:
    from holdfast.protocols.check import Check


class RuleJudge:
    """Judges single turns by one invariant."""

    def __init__(
        self, invariant: Invariant, timeout_ms: int, *, web: bool = True, declared: Set[str] = frozenset()
    ) -> None:
        """`web` means that the agent's HTTP calls are visible; `declared` are the tools whose calls are counted."""
        check = make_check(invariant)
        self.traits = traits = check_traits(check)
        self.blind = bool(traits.urls) and not web
        self.counted = bool(traits.tools) and all(name in declared for _, name in traits.tools)
        """Every call that it reads is counted, so a trial without a call was observed and is not a blind one."""
        self.id = invariant.id
        self.decide = check.decide
        self.negate = invariant.negate
        self.negative = (traits.polarity == "negative") != invariant.negate
        self.reads = traits.reads
        self.needs_text = traits.reads not in ("ending", "trace", "state")
        self.over = invariant.over or _choose_turns(self.negative, traits.every_turn)
        self.timeout_ms = timeout_ms
        self.verbatim = traits.reads != "text" or traits.verbatim
        self.checks = () if self.verbatim else (check, *_build_typed_checks(invariant))
        self.by_line = not self.verbatim and _has_length_pattern(invariant)

    def judge_turn(
        self, turn: Turn, observation: Observation, control: Observation | None
    ) -> tuple[Judgement, Finding]:
        """Return the rule's verdict on one turn; a check that raises is an error."""
        text = turn.text or ""
        if self.needs_text and is_blank(text):
            return self._judge_silence(turn)
        evidence = observation.evidence.get(self.id) if self.traits.asks_model else None
        try:
            outcome, finding = self._judge_readings(Exhibit(text, turn, observation, control, evidence))
        except (Exception, SystemExit) as broken:
            return _to_error(broken)
        if turn.cut and self.reads == "text" and outcome == ("pass" if self.negative else "fail"):
            return "unproven", Finding(
                None, f"the answer was cut at Holdfast's limit; before it, {finding.reason}", "answer-cut"
            )
        return outcome, finding

    def _judge_readings(self, exhibit: Exhibit) -> tuple[Judgement, Finding]:
        """Return the rule's verdict on the text as it is, unless another reading contains what it requires or
        forbids.
        """
        first = self._to_outcome(self.decide(exhibit))
        if self.verbatim or first[0] == (decides := "fail" if self.negative else "pass"):
            return first
        # Other readings (without formatting, entities resolved) may only add evidence: a forbidden text found in one of
        # them fails, a required text found in one of them passes. They never take back what the plain text shows.
        judged = (self._to_outcome(finding) for finding in self._find_in_readings(exhibit))
        return next((one for one in judged if one[0] == decides), first)

    def _find_in_readings(self, exhibit: Exhibit) -> Iterator[Finding]:
        text = exhibit.text
        for reading in iter_readings(text, forbids=self.negative, by_line=self.by_line):
            for check in self.checks if reading is not text else self.checks[1:]:
                finding = check.decide(replace(exhibit, text=reading))
                yield (
                    replace(finding, marks=locate_spans(text, reading, finding.marks))
                    if reading is not text
                    else finding
                )

    def judge_trial(
        self, turn: Turn, observation: Observation, control: Observation | None
    ) -> tuple[Judgement, Finding]:
        """Return the rule's verdict on the calls of a trial, or on the recorded state, whatever the agent answered."""
        abstained = self.negative and self.counted and _is_abstention(observation)
        if self.reads == "trace" and not observation.trace and (self.negative or not self.blind) and not abstained:
            finding = Finding(None if self.negative else False, "no call was seen", "no-call")
            return ("unproven" if self.negative else "fail"), finding
        exhibit = Exhibit(turn.text or "", turn, observation, control, observation.evidence.get(self.id))
        try:
            outcome, finding = self._to_outcome(self.decide(exhibit))
        except (Exception, SystemExit) as broken:
            return _to_error(broken)
        depends_on_calls = self.reads == "trace" or "target" in self.traits.texts_read
        return self._apply_doubt(outcome, finding, observation) if depends_on_calls else (outcome, finding)

    def _apply_doubt(self, outcome: Judgement, finding: Finding, observation: Observation) -> tuple[Judgement, Finding]:
        """Return the same outcome, or unproven if calls that were not seen could have changed it."""
        doubt = self._find_doubt(observation) if outcome == ("pass" if self.negative else "fail") else ""
        if not doubt:
            return outcome, finding
        return "unproven", Finding(None, f"{doubt}; {finding.reason}", "calls-hidden")

    def _find_doubt(self, observation: Observation) -> str:
        """Return why something that was not seen may have happened; empty if it has not."""
        if self.blind:
            return "the agent's HTTP traffic is hidden: let Holdfast start it (not inline), or run `holdfast gateway`"
        if len(observation.trace) >= EVENTS_KEPT:
            return f"only the first {EVENTS_KEPT} calls are known"
        if any(event.status == 101 and event.plane == "llm" for event in observation.trace):
            return "the agent called its model over a websocket, which Holdfast does not read"
        closed = find_unreadable_call(observation.trace, self.traits.urls)
        return f"{get_url(closed)} was called in a way that could not be read" if closed else ""

    def _to_outcome(self, finding: Finding) -> tuple[Judgement, Finding]:
        passed, score = finding.passed, finding.score
        if not _is_well_typed(finding):
            return "error", Finding(None, "the check returned a finding with a value of the wrong type", "bad-finding")
        if not finding.code:
            finding = replace(finding, code="check-said", key=(compute_fingerprint(finding.reason),))
        if score is not None and not 0.0 <= score <= 1.0:
            return "error", Finding(
                None, f"the check returned a score of {score}, which is outside 0 to 1", "bad-score"
            )
        # Silence is no proof that something forbidden was not done, so an empty text leaves a negative rule unproven.
        # This is decided before `negate` swaps pass and fail, because the swap must not turn silence into a pass.
        if passed is None or (finding.empty and self.negative):
            return "unproven", finding
        if self.negate and not finding.either_way:
            return _swap(finding, passed, wanted=not self.negative)
        return ("pass" if passed else "fail"), finding

    def _judge_silence(self, turn: Turn) -> tuple[Judgement, Finding]:
        why = describe_ending(turn, self.timeout_ms)
        if self.negative or (self.reads == "latency" and turn.ending != "timeout"):
            return "unproven", Finding(None, f"nothing to judge, no answer: {why}", "no-answer", (turn.ending,))
        return "fail", Finding(False, f"no answer: {why}", "no-answer", (turn.ending,))


def _is_abstention(observation: Observation) -> bool:
    """Return whether the agent answered every turn without calling a declared tool."""
    return (
        bool(observation.turns)
        and not observation.calls
        and all(turn.ending == "answered" and not is_blank(turn.text or "") for turn in observation.turns)
    )


def _is_well_typed(finding: Finding) -> bool:
    """Return whether a finding matches its declared types: nothing else validates what a plug-in returns."""
    decided = finding.passed is True or finding.passed is False or finding.passed is None
    if not (decided and isinstance(finding.code, str) and isinstance(finding.key, tuple)):
        return False
    return not finding.key or all(isinstance(one, str) for one in finding.key)


def _choose_turns(negative: bool, every_turn: bool) -> str:
    """Return which turns decide by default. The opposite of "every turn completes" is that one does not."""
    if every_turn:
        return "any" if negative else "all"
    return "all" if negative else "last"


_COUNTED = re.compile(r"\{(?:[2-9][0-9]|[0-9]{3,})")
"""Matches a repeat of at least twenty in a regex."""


def _has_length_pattern(invariant: Invariant) -> bool:
    """Return whether a pattern of the rule may concern the length of lines, such as `(?m)^.{81,}$`."""
    values = invariant.settings.values()
    texts = (text for value in values for text in (value if isinstance(value, list | tuple) else (value,)))
    return any(isinstance(text, str) and _COUNTED.search(text) for text in texts)


def _build_typed_checks(invariant: Invariant) -> tuple[Check, ...]:
    """Return the check with its texts in plain keyboard characters, if that differs and is valid."""
    settings = {name: _convert_to_typed(value) for name, value in invariant.settings.items()}
    if settings == invariant.settings:
        return ()
    check = make_check(replace(invariant, settings=settings))
    return (check,) if is_usable(check) else ()


def _convert_to_typed(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_convert_to_typed(one) for one in value)
    # A setting without words concerns its characters: a rule against curly quotes does not forbid straight ones.
    return to_typed_text(value) if isinstance(value, str) and re.search(r"\w\w", value) else value


def apply_ran_tools(observation: Observation, outcome: Judgement, finding: Finding) -> tuple[Judgement, Finding]:
    """Return the outcome of a rule on actions: unproven if a tool ran despite a fault that should prevent it.

    An agent that rightly retries then acts twice, because of the fault. A fault that lets its tool run and changes the
    reply looks the same to the agent wherever it acts.
    """
    for entry in observation.met:
        if entry.ran and get_delivery(entry.mode) != "always":
            why = f"{entry.target} had already run when `{entry.mode}` was injected"
            remedies = (
                "use a fault that loses the reply after the tool has run; a Python agent can list it in agent.tools"
            )
            return "unproven", Finding(
                None, f"{why}; only the result sent to the model changed; {remedies}", "tool-ran", (entry.mode,)
            )
    return outcome, finding


def _swap(finding: Finding, passed: bool, *, wanted: bool) -> tuple[Judgement, Finding]:
    """Return the reversed finding; `wanted` means that the rule requires what its check forbids."""
    against = "but this rule is negated" if wanted else "which this rule forbids"
    score = (1.0 if passed else 0.0) if finding.score is None else finding.score
    why = f"{finding.reason}, {against}" if passed else finding.reason
    return ("fail" if passed else "pass"), replace(finding, passed=not passed, reason=why, score=1.0 - score)


def _to_error(broken: BaseException) -> tuple[Judgement, Finding]:
    """Return the outcome of a check that raised: an error, unless it says that nothing could be judged."""
    if isinstance(broken, NothingToJudge):
        return "unproven", Finding(None, str(broken), broken.code)
    details = broken.details if isinstance(broken, HarnessError) else {}
    key = (type(broken).__name__, compute_fingerprint(str(broken)))
    return "error", Finding(None, _describe(broken), "check-raised", key, details=details)


def _describe(broken: BaseException) -> str:
    """Return an exception in words; Holdfast's own errors are used unchanged."""
    text = str(broken)
    if isinstance(broken, HoldfastError) and text:
        return text
    return f"the check raised {type(broken).__name__}{f': {text}' if text else ''}{format_error_place(broken)}"
