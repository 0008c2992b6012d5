"""Cases in words: what each came to, and why one did not pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.model.observation import Turn
from holdfast.model.run import CaseRow, ReplicaRow, Run
from holdfast.model.score import Case
from holdfast.model.spec import Invariant
from holdfast.model.task import Variation
from holdfast.model.verdict import CauseKey, Outcome, Verdict
from holdfast.report import wording
from holdfast.report.safe import one_line
from holdfast.score.composite import GATE_NOT_FULL
from holdfast.score.task_cases import OBEYED

SHOWN = 12
"""Turns that are listed; the one that decided is always there."""
ROOM = 200
"""Characters of what was asked, and of what was answered."""


def conversation(turns: Sequence[Turn], *, decided: int = -1, answer: str = "") -> Iterator[tuple[str, str]]:
    """The name of each turn, its question and its answer; `answer` replaces that of the turn that decided."""
    shown = [n for n in range(len(turns)) if n < SHOWN - 1 or n in (decided, len(turns) - 1)]
    before = -1
    for n in shown:
        if n - before > 1:
            yield "…", f"({n - before - 1} turns are left out)"
        reply = answer if n == decided and answer else answer_of(turns[n])
        yield f"turn {n + 1}", f"{_brief(turns[n].asked)} → {reply}"
        before = n


def answer_of(turn: Turn) -> str:
    """What came back on one line, or the ending that stood in its place."""
    ending = "" if turn.ending == "answered" else f"({turn.ending}{': ' + turn.detail if turn.detail else ''})"
    said = " ".join(part for part in (_brief(turn.text or ""), one_line(ending)) if part)
    return said or "(nothing: the answer is empty)"


def _brief(text: str) -> str:
    return one_line(text[:ROOM]) + (" …" if len(text) > ROOM else "")


FULL = 1.0 - 1e-9
SOURCE = 60
"""Characters of a golden prompt that name its mutation."""
ONE_SAMPLE = "1 sample per case: results may vary, try --replicas 5"


def head(case: Case) -> str:
    """The scenario, with the params if there are any; a mutation by its type, a session by its id."""
    if case.variation is not None:
        return mutation_name(case.variation)
    return case.session or wording.head(case.scenario, case.params)


def mutation_name(made: Variation) -> str:
    """`noise (typos) of 'What does the kettle cost?'`."""
    named = f"{made.mutation} ({made.name})" if made.name else made.mutation
    return f"{named} of {made.source[:SOURCE]!r}"


def noun(run: Run) -> str:
    """What a case of the run is called."""
    return {"mutation": "mutation", "replay": "session"}.get(run.part, "case")


def composite(value: float | None) -> str:
    """Three decimals, or – where there is none."""
    return "–" if value is None else f"{value:.3f}"


def counted(run: Run) -> str:
    """`4 of 5 cases passed, 1 flaky`."""
    cases = [row.case for row in run.cases]
    if not cases:
        return f"no {noun(run)} is decided"
    passed = sum(case.status == "pass" for case in cases)
    flaky = sum(case.flaky for case in cases)
    return f"{passed} of {wording.plural(len(cases), noun(run))} passed" + (f", {flaky} flaky" if flaky else "")


def telling(row: CaseRow) -> ReplicaRow | None:
    """The trial that shows best why the case is what it is."""
    at = next((n for n, one in enumerate(row.case.replicas) if one.status == row.case.status), 0)
    return row.replicas[at] if len(row.replicas) else None


def outcome(case: Case) -> Outcome:
    """What the case is called where an error of ours is told from what is only unproven."""
    return "unproven" if case.unproven_only else case.status


def replica_outcome(one: ReplicaRow) -> Outcome:
    """The same of one trial: it is an error if something of ours broke in it."""
    broke = (
        one.seen.error or any(v.outcome == "error" for v in one.verdicts) or any(f.error for f in one.seen.forbidden)
    )
    return "unproven" if one.replica.status == "error" and not broke else one.replica.status


def short(case: Case) -> bool:
    """Whether a rule of it did not score in full, though it may have passed."""
    if case.status == "pass" and (case.variation is not None or case.session):
        return case.flaky
    return case.status != "pass" or case.flaky or case.composite is None or case.composite < FULL


def unpassed(one: ReplicaRow) -> list[Verdict]:
    """The rules of a trial that did not pass, or not in full."""
    return [v for v in one.verdicts if v.outcome != "pass" or v.score < FULL]


def violations(one: ReplicaRow) -> Iterator[str]:
    """What the agent did that the spec forbids, and what could not be told."""
    for rule in one.seen.forbidden:
        if rule.error:
            yield f"{rule.rule} is undecided: {rule.error}"
        elif rule.violated:
            yield f"{rule.rule}: {'; '.join(rule.details)}"


def exchange(one: ReplicaRow, room: int = 600) -> Iterator[tuple[str, str]]:
    """How it ended, if badly; what was asked and answered, of a conversation turn by turn."""
    if bad := ended(one):
        yield "ended", bad
    if len(one.seen.turns) > 1:
        last = len(one.seen.turns) - 1
        yield from conversation(one.seen.turns, decided=last, answer=answered(one, room))
    else:
        yield "asked", one_line(one.prompt)
        yield "answered", answered(one, room)


def answered(one: ReplicaRow, room: int = 600) -> str:
    """The last answer on one line; where there is none, that, or our error."""
    turn = one.seen.turns[-1] if one.seen.turns else None
    text = (turn.text or "") if turn else ""
    shown = one_line(text[:room]) + (" …" if len(text) > room else "")
    if one.seen.error:
        return f"{shown} {one_line(f'(error: {one.seen.error})')}".strip()
    return shown or ("(nothing: the answer is empty)" if one.seen.ending == "answered" else "(nothing)")


def ended(one: ReplicaRow) -> str:
    """A bad ending on one line; empty for a good one."""
    detail = next((turn.detail for turn in one.seen.turns if turn.detail), "")
    return wording.ended("error" if one.seen.error else one.seen.ending, detail, one.seen.calls_made)


class RuleFacts:
    """What a verdict is of: the rule's place, weight and gate."""

    def __init__(self, run: Run) -> None:
        self._known: Mapping[str, Invariant] = {rule.id: rule for rule in run.invariants}
        self._places = wording.Places(run)

    def reason(self, verdict: Verdict, one: ReplicaRow) -> str:
        """`one_mail (gate): two requests, not 1`; of a gate that passed and forces 0, what it needs."""
        passed, gate = verdict.outcome == "pass", self.gate(verdict.invariant)
        if CauseKey(verdict.invariant, GATE_NOT_FULL) in one.replica.causes:
            return f"{verdict.invariant} (gate needs 1.0; scored {verdict.score:g}): {verdict.reason}"
        scored = f", scored {verdict.score:g}" if (passed or verdict.score > 0) and verdict.score < FULL else ""
        return f"{verdict.invariant}{' (gate)' if gate else ''}{scored}: {verdict.reason}"

    def gate(self, rule: str) -> bool:
        return rule in self._known and self._known[rule].gate

    def place(self, rule: str) -> str:
        return self._places.of(rule)

    def description(self, rule: str) -> str:
        return self._known[rule].description if rule in self._known else ""


def reproducer(run: Run, case: Case, one: ReplicaRow) -> dict[str, Any]:
    """All that gives the same trial again."""
    return {
        "spec_file": run.spec_path,
        "spec_digest": run.spec_digest,
        "agent_digest": run.agent_digest,
        "seed": run.seed,
        "trial_id": one.replica.trial,
        "parameters": case.params,
        "command": one.again,
    }


def troubled(run: Run) -> Sequence[CaseRow]:
    """Cases that need explaining: failed, then broken, then those that passed with a flaw."""
    order = {"fail": 0, "error": 1, "pass": 2}
    found = [row for row in run.cases if short(row.case)]
    return sorted(found, key=lambda row: order[row.case.status])


def explained(run: Run) -> frozenset[str]:
    """The trials whose failures a case's own explanation tells."""
    rows = (row.case for row in run.cases if row.case.status != "pass")
    return frozenset(one.trial for case in rows for one in case.replicas)


def obedience(one: ReplicaRow) -> str:
    """That the attack was obeyed in this replica, in words; empty if it was not."""
    if all(cause.code != OBEYED for cause in one.replica.causes):
        return ""
    return "the attack succeeded: its canary or action is in the agent's answer or calls"
