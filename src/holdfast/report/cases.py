"""Describes cases: the result of each, and why one did not pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.model.observation import Turn
from holdfast.model.run import CaseRow, ReplicaRow, Run, TrialRow
from holdfast.model.score import Case
from holdfast.model.spec import Invariant
from holdfast.model.task import Variation
from holdfast.model.verdict import CauseKey, Outcome, Verdict
from holdfast.report import wording
from holdfast.report.safe import to_one_line
from holdfast.score.composite import GATE_NOT_FULL

SHOWN = 12
"""Turns that are listed; the deciding one is always included."""
ROOM = 200
"""Characters of a question and of an answer."""


def format_conversation(turns: Sequence[Turn], *, decided: int = -1, answer: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name, question and answer of each turn; `answer` replaces the answer of the deciding turn."""
    listed_turns = [n for n in range(len(turns)) if n < SHOWN - 1 or n in (decided, len(turns) - 1)]
    before = -1
    for n in listed_turns:
        if n - before > 1:
            yield "…", f"(turns left out: {n - before - 1})"
        reply = answer if n == decided and answer else _format_turn_answer(turns[n])
        yield f"turn {n + 1}", f"{_shorten_text(turns[n].asked)} → {reply}"
        before = n


def _format_turn_answer(turn: Turn) -> str:
    """Return the answer on one line, or the ending if there is none."""
    ending = "" if turn.ending == "answered" else f"({turn.ending}{': ' + turn.detail if turn.detail else ''})"
    text = " ".join(part for part in (_shorten_text(turn.text or ""), to_one_line(ending)) if part)
    return text or "(nothing: the answer is empty)"


def _shorten_text(text: str) -> str:
    return to_one_line(text[:ROOM]) + (" …" if len(text) > ROOM else "")


FULL = 1.0 - 1e-9
SOURCE = 60
"""Characters of a golden prompt in the name of its mutation."""
ONE_SAMPLE = "1 sample per case: results may vary, try --replicas 5"


def format_head(case: Case) -> str:
    """Return the scenario with its params; a mutation by its type, a session by its id."""
    if case.variation is not None:
        return format_mutation(case.variation)
    return case.session or wording.format_head(case.scenario, case.params)


def format_marked_head(case: Case) -> str:
    """Return the same with its kind, because a scenario of the matrix may have its name: `case calm`, `session
    refund`.
    """
    return (
        format_head(case)
        if case.variation is not None
        else f"{'session' if case.session else 'case'} {format_head(case)}"
    )


def format_mutation(made: Variation) -> str:
    """`noise (typos) of 'What does the kettle cost?'`."""
    name = f"{made.mutation} ({made.name})" if made.name else made.mutation
    return f"{name} of {made.source[:SOURCE]!r}"


def get_noun(run: Run) -> str:
    """Return the word for a case of this run."""
    return {"mutation": "mutation", "replay": "session"}.get(run.part, "case")


def format_composite(value: float | None) -> str:
    """Format a composite with three decimals, or – if there is none."""
    return "–" if value is None else f"{value:.3f}"


def format_counts(run: Run) -> str:
    """`4 of 5 cases passed, 1 flaky`."""
    cases = [row.case for row in run.cases]
    if not cases:
        return f"no {get_noun(run)} is decided"
    passed = sum(case.status == "pass" for case in cases)
    flaky = sum(case.flaky for case in cases)
    return f"{passed} of {wording.format_count(len(cases), get_noun(run))} passed" + (
        f", {flaky} flaky" if flaky else ""
    )


def find_telling(row: CaseRow) -> ReplicaRow | None:
    """Return the trial that best explains the case."""
    at = next((n for n, one in enumerate(row.case.replicas) if one.status == row.case.status), 0)
    return row.replicas[at] if len(row.replicas) else None


def get_outcome(case: Case) -> Outcome:
    """Return the outcome of the case, with harness errors distinguished from unproven cases."""
    return "unproven" if case.unproven_only else case.status


def get_replica_outcome(one: ReplicaRow) -> Outcome:
    """Return the outcome of one trial: an error if the harness failed in it."""
    broke = (
        one.seen.error or any(v.outcome == "error" for v in one.verdicts) or any(f.error for f in one.seen.forbidden)
    )
    return "unproven" if one.replica.status == "error" and not broke else one.replica.status


def is_imperfect(case: Case) -> bool:
    """Return whether one of its rules did not score fully, even if the case passed."""
    if case.status == "pass" and (case.variation is not None or case.session):
        return case.flaky
    return case.status != "pass" or case.flaky or case.composite is None or case.composite < FULL


def list_unpassed(one: ReplicaRow) -> list[Verdict]:
    """Return the rules of a trial that did not pass, or not fully."""
    return [v for v in one.verdicts if v.outcome != "pass" or v.score < FULL]


def list_violations(one: ReplicaRow) -> Iterator[str]:
    """Yield what the agent did against the spec, and what could not be determined."""
    for rule in one.seen.forbidden:
        if rule.error:
            yield f"{rule.rule} is undecided: {rule.error}"
        elif rule.violated:
            yield f"{rule.rule}: {'; '.join(rule.details)}"


def build_trial_row(one: ReplicaRow) -> TrialRow:
    """Return a trial of a case as one of a cell; its last turn decides."""
    seen = one.seen
    return TrialRow(
        id=one.replica.trial,
        prompt=one.prompt,
        answer=seen.turns[-1].text if seen.turns else None,
        ending="error" if seen.error else seen.ending,
        latency_ms=sum(turn.latency_ms for turn in seen.turns),
        outcome=get_replica_outcome(one),
        reason=one.replica.reason,
        detail=seen.error or next((turn.detail for turn in seen.turns if turn.detail), ""),
        faults=seen.ledger,
        turns=seen.turns,
        turn=max(0, len(seen.turns) - 1),
        calls_made=seen.calls_made,
        trace=seen.trace,
        again=one.again,
    )


class RuleFacts(wording.Places):
    """The position, description and gate of each rule."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._known: Mapping[str, Invariant] = {rule.id: rule for rule in run.invariants}

    def format_reason(self, verdict: Verdict, one: ReplicaRow) -> str:
        """`one_mail (gate): two requests, not 1`; for a passed gate that forces 0, what it needs."""
        if CauseKey(verdict.invariant, GATE_NOT_FULL) in one.replica.causes:
            return f"{verdict.invariant} (gate needs 1.0; scored {verdict.score:g}): {verdict.reason}"
        rule = self._known.get(verdict.invariant)
        gate = " (gate)" if rule is not None and rule.gate else ""
        is_partial = (verdict.outcome == "pass" or verdict.score > 0) and verdict.score < FULL
        scored = f", scored {verdict.score:g}" if is_partial else ""
        return f"{verdict.invariant}{gate}{scored}: {verdict.reason}"

    def get_description(self, rule: str) -> str:
        return self._known[rule].description if rule in self._known else ""


def build_reproducer(run: Run, case: Case, one: ReplicaRow) -> dict[str, Any]:
    """Return everything that reproduces the trial."""
    return {
        "spec_file": run.spec_path,
        "spec_digest": run.spec_digest,
        "agent_digest": run.agent_digest,
        "seed": run.seed,
        "trial_id": one.replica.trial,
        "parameters": case.params,
        "command": one.again,
    }


def list_troubled(run: Run) -> Sequence[CaseRow]:
    """List the cases that need explaining: failed, then broken, then those that did not pass fully."""
    order = {"fail": 0, "error": 1, "pass": 2}
    rows = [row for row in run.cases if is_imperfect(row.case)]
    return sorted(rows, key=lambda row: order[row.case.status])


def list_explained(run: Run) -> frozenset[str]:
    """Return the trials whose failures the explanation of a case covers."""
    rows = (row.case for row in run.cases if row.case.status != "pass")
    return frozenset(one.trial for case in rows for one in case.replicas)
