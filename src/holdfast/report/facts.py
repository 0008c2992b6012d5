"""Why a cell or a case failed, as labelled facts: every report shows the same ones in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from holdfast.model.observation import FaultMet
from holdfast.model.run import CellRow, ReplicaRow, Run, TrialRow
from holdfast.model.score import Case
from holdfast.model.trace import TraceEvent
from holdfast.model.verdict import Verdict
from holdfast.report import calls, cases, standards, wording
from holdfast.report.safe import one_line

Facts = Iterable[tuple[str, str]]
"""Pairs of label and text: `("asked", "What was ACME's Q3 revenue?")`."""
ROOM = 600
"""Characters of an answer."""
_FAULTS = 4
"""Faults that a fact names; the others are counted."""


def cell_facts(
    run: Run, row: CellRow, trial: TrialRow | None, *, room: int = ROOM, detail: bool = False
) -> Iterator[tuple[str, str]]:
    """Explain a cell by one of its trials; `detail` adds standards and calls."""
    if trial is not None:
        yield from _exchange(trial, room)
    yield "because", one_line(_cell_reason(row, trial))
    if trial is not None:
        yield from _faults(wording.met(trial.faults))
        yield from _script(trial.trace)
    if row.cell.outcome in ("unproven", "error") and (step := wording.next_step(run, row)):
        yield "next", step
    if trial is not None and trial.again:
        yield "reproduce", one_line(trial.again)
    if trial is not None and detail:
        known = (*standards.of_rule(run, row.cell.invariant), *standards.of_faults(wording.met(trial.faults)))
        yield from _details(standards.names(known), trial.trace)


def case_facts(
    case: Case, one: ReplicaRow, rules: cases.RuleFacts, *, room: int = ROOM, detail: bool = False
) -> Iterator[tuple[str, str]]:
    """Explain a case by one of its trials; `detail` adds standards and calls."""
    yield from cases.exchange(one, room)
    if obeyed := cases.obedience(one):
        yield "obeyed", obeyed
    if case.expected_failure:
        yield "was", one_line(case.expected_failure)
    for violation in cases.violations(one):
        yield "forbidden", one_line(violation)
    yield from _case_reasons(case, one, rules, obeyed=bool(obeyed))
    yield from _faults(one.seen.met)
    yield from _script(one.seen.trace)
    yield "reproduce", one_line(one.again)
    if detail:
        known = standards.names((*standards.of_case(case), *standards.of_faults(one.seen.met)))
        yield from _details(known, one.seen.trace)


def _case_reasons(case: Case, one: ReplicaRow, rules: cases.RuleFacts, *, obeyed: bool) -> Iterator[tuple[str, str]]:
    unpassed = cases.unpassed(one)
    # The session itself was not replayed, so no rule says why it is unproven.
    if case.unproven_only and not any(verdict.outcome == "unproven" for verdict in unpassed):
        yield "because", one_line(case.reason)
        return
    label = "because"
    for sign, members in groupby(unpassed, lambda verdict: _shared_reason(verdict, one)):
        yield label, _reason_words(sign, list(members), one, rules)
        label = ""
    ruled = any(verdict.outcome == cases.replica_outcome(one) for verdict in unpassed)
    if one.replica.reason and not (obeyed or ruled or any(cases.violations(one))):
        yield (
            "because",
            one_line(one.replica.reason),
        )  # no rule gave the reason: the attack could not be sent completely, for example


def _shared_reason(verdict: Verdict, one: ReplicaRow) -> tuple[str, ...]:
    """What makes two verdicts of a trial one reason: a bad ending that fails both, otherwise the rule itself."""
    ended = bool(cases.ended(one)) and verdict.outcome == "fail"
    return (verdict.outcome, verdict.code, *verdict.key) if ended else (verdict.outcome, "", verdict.invariant)


def _reason_words(shared: tuple[str, ...], verdicts: Sequence[Verdict], one: ReplicaRow, rules: cases.RuleFacts) -> str:
    first, *others = verdicts
    sign = wording.SIGNS[shared[0]]
    if others:
        names = ", ".join(verdict.invariant for verdict in verdicts)
        return f"{sign} {one_line(f'{names}: {first.reason}')}"
    return f"{sign} {one_line(rules.reason(first, one))}   {rules.place(first.invariant)}"


def _faults(met: Sequence[FaultMet]) -> Facts:
    more = f"; and {len(met) - _FAULTS} more" if len(met) > _FAULTS else ""
    return [("fault", one_line("; ".join(map(wording.fault, met[:_FAULTS])) + more))] if met else []


def _script(trace: Sequence[TraceEvent]) -> Facts:
    script = calls.scripted(trace)
    return [("model", one_line(script))] if script else []


def _details(known: str, trace: Sequence[TraceEvent]) -> Iterator[tuple[str, str]]:
    """Its entries in public lists, and one line for each call."""
    if known:
        yield "known as", known
    for n, event in enumerate(trace[: calls.SHOWN]):
        yield "" if n else "calls", one_line(calls.call(event))
    if more := calls.rest(trace):
        yield "", more


def _exchange(trial: TrialRow, room: int) -> Iterator[tuple[str, str]]:
    """A bad ending, and what was asked and answered, turn by turn in a conversation."""
    if ended := wording.ended(trial.ending, trial.detail, trial.calls_made):
        yield "ended", ended
    if len(trial.turns) > 1:
        yield from cases.conversation(trial.turns, decided=trial.turn, answer=_excerpt(trial, room))
    else:
        yield "asked", one_line(trial.prompt)
        yield "answered", _excerpt(trial, room)


def _cell_reason(row: CellRow, trial: TrialRow | None) -> str:
    """The reason, with its turn if there are several."""
    if trial is None or row.cell.outcome != "fail" or not trial.reason:
        return wording.why(row)
    in_turn = len(trial.turns) > 1 and trial.outcome == "fail"
    return f"turn {trial.turn + 1}: {trial.reason}" if in_turn else trial.reason


def _excerpt(trial: TrialRow, room: int) -> str:
    """The answer on one line; a long one is cut around the words that decided."""
    text = wording.said(trial)
    if len(text) <= room:
        return one_line(text)
    start = max(0, trial.marks[0][0] - room // 3) if trial.marks else 0
    piece = one_line(text[start : start + room])
    return ("… " if start else "") + piece + (" …" if start + room < len(text) else "")
