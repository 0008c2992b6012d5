"""Applies rules to observations."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.judge.rule import RuleJudge, apply_ran_tools, has_text
from holdfast.model.codec import encode, encode_canonical
from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.observation import MASK, Observation, Turn
from holdfast.model.spec import Invariant, Spec
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Finding, Judgement, Outcome, Verdict
from holdfast.plan.checks import fill_params, has_params

_Judged = tuple[Judgement, Finding, int]
"""The outcome, the finding and the index of the turn that decided."""


class Judge:
    """Builds each rule's check once; `stored` means that the observations come from a run's directory."""

    def __init__(self, spec: Spec, *, stored: bool = False) -> None:
        self._stored = stored
        self._hidden: Judgement = "error" if spec.part == "scenario" else "unproven"
        """Whether a mask may hide what a rule reads.

        An unproven rule scores 0 in a scenario, which would count against the agent.
        """
        self._timeout_ms = spec.agent.timeout_ms
        self._web = spec.agent.web_in_reach
        self._declared = frozenset(
            ref.name or ref.path.replace(":", ".").rpartition(".")[2] for ref in spec.agent.tools
        )
        self._rules = {i.id: self._build_rule(i) for i in spec.invariants if not has_params(i)}
        self._filled: dict[tuple[str, bytes], RuleJudge] = {}

    def judge(
        self, invariant: Invariant, trial: Trial, observation: Observation, control: Observation | None = None
    ) -> Verdict:
        """Return the verdict of one rule on one observation.

        Never raises: a check that raises gives an error verdict.
        """
        rule = self._rules.get(invariant.id) or self._get_filled_rule(invariant, trial)
        turns = observation.turns
        if rule.reads in ("trace", "state") and (turns or not observation.error):
            turn = max(0, len(turns) - 1)
            outcome, finding = rule.judge_trial((turns or _build_silent_turn(trial))[turn], observation, control)
        elif len(turns) == 1:
            outcome, finding = rule.judge_turn(turns[0], observation, control)
            turn = 0
        elif not turns and observation.error:
            why = observation.error
            return Verdict(
                trial.id, rule.id, "error", 0.0, why, code="harness-broke", key=_get_error_key(why), ended_by=why
            )
        else:
            outcome, finding, turn = _judge_conversation(rule, turns or _build_silent_turn(trial), observation, control)
        if observation.error:
            outcome, finding = _to_error(observation, outcome, finding)
        if self._stored and (hidden := explain_masking(rule, observation, control, outcome)):
            outcome, finding = self._hidden, Finding(None, hidden, "masked")
        if observation.ledger and rule.traits.judges_deeds and outcome in ("pass", "fail"):
            outcome, finding = apply_ran_tools(observation, outcome, finding)
        if trial.task.variation is not UNSET and turns and not observation.error:
            outcome, finding = self._judge_request(invariant, trial, observation, control, (outcome, finding))
        if rule.negative and outcome == "pass" and rule.needs_text and len(turns) < len(trial.task.turns):
            why = f"only {len(turns)} of {len(trial.task.turns)} turns ran; {finding.reason}"
            outcome, finding = "unproven", Finding(None, why, "ended-early")
        ending = "" if outcome == "pass" else _find_decisive_ending(rule, turns[turn : turn + 1], observation)
        # Nothing needs the code of a pass, and most verdicts are passes: without it their files stay small.
        code, key = ("", ()) if outcome == "pass" else (finding.code, finding.key)
        found_as = (finding.reason, turn, finding.marks, finding.details, code, key)
        return Verdict(trial.id, rule.id, outcome, _get_score(outcome, finding), *found_as, ending)

    def _judge_request(
        self,
        invariant: Invariant,
        trial: Trial,
        observation: Observation,
        control: Observation | None,
        judged: tuple[Judgement, Finding],
    ) -> tuple[Judgement, Finding]:
        """Return the verdict on a mutated request: a rejection or a bad ending decides for every rule."""
        change = trial.task.variation.request if trial.task.variation is not UNSET else None
        if change is None:
            return judged
        from holdfast.judge.changed_requests import JudgedSend, decide_request

        rule = self._rules.get(invariant.id) or self._get_filled_rule(invariant, trial)
        sends = [JudgedSend(observation, *judged)]
        once = replace(trial, task=trial.task.plain)
        for repeat in observation.repeats:
            if (
                rule.traits.asks_model
            ):  # no model was asked about it; whether the agent answered it in the same way still counts
                sends.append(JudgedSend(repeat, "pass", judged[1]))
            else:
                verdict = self.judge(invariant, once, repeat, control)
                sends.append(JudgedSend(repeat, *_to_finding(verdict)))
        act = rule.negative and rule.reads in ("trace", "state")
        return decide_request(change, sends, control, self._timeout_ms, act=act)

    def _get_filled_rule(self, invariant: Invariant, trial: Trial) -> RuleJudge:
        """Return the rule with the trial's `{{ params.x }}` in its settings."""
        key = (invariant.id, encode_canonical(trial.params))
        if key not in self._filled:
            self._filled[key] = self._build_rule(fill_params(invariant, trial.params))
        return self._filled[key]

    def _build_rule(self, invariant: Invariant) -> RuleJudge:
        return RuleJudge(invariant, self._timeout_ms, web=self._web, declared=self._declared)


def _to_finding(verdict: Verdict) -> tuple[Judgement, Finding]:
    passed = {"pass": True, "fail": False}.get(verdict.outcome)
    score = verdict.score if verdict.outcome in ("pass", "fail") else None
    finding = Finding(passed, verdict.reason, verdict.code, verdict.key, score=score, details=verdict.details)
    return verdict.outcome, finding


def _get_score(outcome: Outcome, finding: Finding) -> float:
    """Return the check's own score of a pass or a fail; without one, 1 for a pass. Anything else counts 0."""
    if outcome == "pass":
        return 1.0 if finding.score is None else finding.score
    return finding.score if outcome == "fail" and finding.score is not None else 0.0


def _find_decisive_ending(rule: RuleJudge, decided: Sequence[Turn], observation: Observation) -> str:
    """Return how the trial ended, if a harness error interrupted it, or it left no text for a rule that reads the
    answer.
    """
    if observation.error:
        return observation.error
    if rule.reads in ("trace", "state") or not decided or has_text(decided[0]):
        return ""
    ending, detail = decided[0].ending, decided[0].detail
    return f"{ending}: {detail}" if detail else ending


def _to_error(observation: Observation, outcome: Judgement, finding: Finding) -> tuple[Judgement, Finding]:
    """Turn a fail into an error if Holdfast failed: the agent did not cause it."""
    if outcome not in ("fail", "unproven"):
        return outcome, finding
    why = f"{observation.error} ({finding.reason})"
    return ("error" if outcome == "fail" else outcome), Finding(
        None, why, "harness-broke", _get_error_key(observation.error), marks=finding.marks, details=finding.details
    )


def _get_error_key(error: str) -> tuple[str, ...]:
    return (compute_fingerprint(error),)


def _build_silent_turn(trial: Trial) -> tuple[Turn, ...]:
    """Return an observation without turns, as one turn without a result."""
    return (Turn(trial.task.prompt, ending="no_answer"),)


def _judge_conversation(
    rule: RuleJudge, turns: Sequence[Turn], observation: Observation, control: Observation | None
) -> _Judged:
    """Combine several turns as `over` says; the deciding turn is named."""
    judged: list[_Judged] = [(*rule.judge_turn(turns[i], observation, control), i) for i in _select_turns(rule, turns)]
    if rule.over == "any":
        return min(judged, key=lambda j: (_ANY[j[0]], -(j[1].score or 0.0), j[2]))
    return min(judged, key=lambda j: (_ALL[j[0]], 1.0 if j[1].score is None else j[1].score, j[2]))


def _select_turns(rule: RuleJudge, turns: Sequence[Turn]) -> Sequence[int]:
    """Return the turns that the rule reads. A negative rule reads every turn with text."""
    last = len(turns) - 1
    if rule.over == "last":
        return (last,)
    if rule.negative and rule.needs_text:
        return [i for i, turn in enumerate(turns) if has_text(turn)] or (last,)
    return range(len(turns))


# The deciding outcome comes first: one fail settles `all`, one pass settles `any`.
_ALL: dict[Judgement, int] = {"fail": 0, "error": 1, "unproven": 2, "pass": 3}
_ANY: dict[Judgement, int] = {"pass": 0, "error": 1, "unproven": 2, "fail": 3}

_AGAIN = "it cannot be judged again"


# Stored observations have secrets masked. A text rule may then see `***` instead of what the run itself saw, so an
# outcome that hangs on it is not repeated as if it were certain.
def explain_masking(rule: RuleJudge, observation: Observation, control: Observation | None, outcome: Judgement) -> str:
    """Return why this outcome may differ from that of the run itself; empty if it does not."""
    if outcome not in ("pass", "fail"):
        return ""
    texts = rule.traits.texts_read
    if "answer" in texts and (rule.reads == "state" or outcome == ("pass" if rule.negative else "fail")):
        if observation.masked:
            return f"a secret was masked in this answer; {_AGAIN}"
        if rule.traits.needs_control and control is not None and control.masked:
            return f"a secret was masked in the answer that this one is compared with; {_AGAIN}"
    if "evidence" in texts and MASK.encode() in encode(observation.evidence.get(rule.id)):
        return f"a secret was masked in the evidence recorded for this rule; {_AGAIN}"
    if any(_is_masked(event, texts) for event in observation.trace):
        return f"a secret was masked in a call of the agent; {_AGAIN}"
    return ""


def _is_masked(event: TraceEvent, texts: tuple[str, ...]) -> bool:
    """Return whether the event has masked text that a rule reads; of a model call, no rule reads the request."""
    if event.event_type == "llm_call":
        return False
    arguments = "arguments" in texts and (MASK in event.input or MASK in event.idempotency)
    return arguments or ("target" in texts and MASK in event.tool)
