"""The verdicts of one trial as one number: weights, gates, forbidden rules. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from holdfast.model.observation import ForbiddenResult
from holdfast.model.score import Replica
from holdfast.model.spec import SEVERITY_WEIGHTS, Invariant, Scoring
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict

SLACK = 1e-9
"""0.1 + 0.2 is 0.3, also in floating point."""
UNMET = "passed, but the fault was never met: nothing is proven"
"""Why a rule, and so its trial, is unproven."""


def weight(rule: Invariant) -> float:
    """A rule's weight in the composite: its own, else its severity's."""
    return SEVERITY_WEIGHTS[rule.severity] if rule.weight is None else rule.weight


def composite(
    trial: Trial,
    rules: Sequence[Invariant],
    verdicts: Mapping[str, Verdict],
    forbidden: Sequence[ForbiddenResult],
    scoring: Scoring,
) -> Replica:
    """What the trial comes to, and why if that is no pass."""
    unknown = _unknown(rules, verdicts, forbidden)
    if unknown:
        return Replica(trial.id, "error", None, trial.replica, unknown)
    broken = [f"forbidden: {one.rule} ({'; '.join(one.details)})" for one in forbidden if one.violated]
    closed = [why for rule in rules if (why := _closed(rule, verdicts[rule.id], scoring))]
    value = 0.0 if broken or closed else _mean(rules, verdicts)
    reason = "; ".join((*broken, *closed)) or _short(value, rules, verdicts, scoring)
    return Replica(trial.id, "fail" if reason else "pass", value, trial.replica, reason)


def proven(
    judged: Replica,
    rules: Sequence[Invariant],
    verdicts: Mapping[str, Verdict],
    unproven: Mapping[str, str],
    scoring: Scoring,
) -> Replica:
    """What the trial comes to if rules that passed without proof score nothing; `unproven` says why, by rule.

    One that passes no other way is an error; its composite is what it comes to without them.
    """
    if judged.composite is None:
        return judged
    idle = [rule.id for rule in rules if rule.id in unproven and verdicts[rule.id].outcome == "pass"]
    if not idle:
        return judged
    counted = {**verdicts, **{rule: replace(verdicts[rule], outcome="unproven", score=0.0) for rule in idle}}
    closed = any(_closed(rule, counted[rule.id], scoring) for rule in rules)
    value = 0.0 if closed or not judged.composite else _mean(rules, counted)
    short = _short(value, rules, counted, scoring)
    if judged.status == "pass" and (closed or short):
        return replace(judged, status="error", composite=value, reason=why_unproven(idle, unproven))
    return replace(judged, composite=value, reason=short if judged.composite else judged.reason)


def why_unproven(rules: Iterable[str], reasons: Mapping[str, str]) -> str:
    """The rules with the reason of each; those with the same reason together."""
    by_reason: dict[str, list[str]] = {}
    for rule in rules:
        by_reason.setdefault(reasons[rule], []).append(rule)
    return "; ".join(f"{', '.join(some)}: {why}" for why, some in by_reason.items())


def _unknown(rules: Sequence[Invariant], verdicts: Mapping[str, Verdict], forbidden: Sequence[ForbiddenResult]) -> str:
    """Why there is no composite; empty if there is one."""
    errors = [f"{v.invariant}: {v.reason}" for v in verdicts.values() if v.outcome == "error"]
    errors += [f"{rule.id} was not judged" for rule in rules if rule.id not in verdicts]
    errors += [f"forbidden {one.rule}: {one.error}" for one in forbidden if one.error]
    return "; ".join(errors)


def _closed(rule: Invariant, verdict: Verdict, scoring: Scoring) -> str:
    """Why a gate forces the composite to 0; empty if it does not."""
    if not rule.gate:
        return ""
    if scoring.gate_on == "passed":
        return "" if verdict.outcome == "pass" else f"gate {rule.id} did not pass: {verdict.reason}"
    scored = _scored(verdict)
    if verdict.outcome == "fail" and scored >= 1.0 - SLACK:  # a script may contradict itself
        return f"gate {rule.id} failed, though it scored {scored:g}: {verdict.reason}"
    if scored >= 1.0 - SLACK:
        return ""
    return f"gate {rule.id} needs 1.0; scored {scored:g}: {verdict.reason}"


def _scored(verdict: Verdict) -> float:
    """An unproven rule scores nothing."""
    return 0.0 if verdict.outcome == "unproven" else verdict.score


def _mean(rules: Sequence[Invariant], verdicts: Mapping[str, Verdict]) -> float:
    total = sum(weight(rule) for rule in rules)
    if not total:  # `when` may leave only rules that weigh nothing
        return min(_scored(verdicts[rule.id]) for rule in rules)
    return sum(weight(rule) * _scored(verdicts[rule.id]) for rule in rules) / total


def _short(value: float, rules: Sequence[Invariant], verdicts: Mapping[str, Verdict], scoring: Scoring) -> str:
    """Why a composite is no pass; empty if it is one."""
    failed = [rule.id for rule in rules if verdicts[rule.id].outcome != "pass"]
    if scoring.pass_threshold is None:
        return f"not passed: {', '.join(failed)}" if failed else ""
    if value >= scoring.pass_threshold - SLACK:
        return ""
    named = f" ({', '.join(failed)})" if failed else ""
    return f"composite {value:.3f} is below {scoring.pass_threshold:g}{named}"
