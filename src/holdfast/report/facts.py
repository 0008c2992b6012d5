"""The failure of a cell or a case as labelled facts: every report shows the same ones in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from holdfast.model.observation import FaultMet
from holdfast.model.run import CellRow, ReplicaRow, Run, TrialRow
from holdfast.model.score import Case
from holdfast.model.trace import TraceEvent
from holdfast.model.verdict import Verdict
from holdfast.report import calls, cases, standards, wording
from holdfast.report.safe import to_one_line

Facts = Iterable[tuple[str, str]]
"""Pairs of label and text: `("asked", "What was ACME's Q3 revenue?")`."""
ROOM = 600
"""Characters of an answer."""
_FAULTS = 4
"""Faults that a fact names; the others are counted."""


def list_cell_facts(
    run: Run, row: CellRow, trial: TrialRow | None, *, room: int = ROOM, detail: bool = False
) -> Iterator[tuple[str, str]]:
    """Explain a cell by one of its trials; `detail` adds standards and calls."""
    if trial is not None:
        yield from _list_exchange(trial, room)
    yield "because", to_one_line(_format_cell_reason(row, trial))
    if trial is not None:
        yield from _list_faults(wording.filter_met(trial.faults))
        yield from _list_script(trial.trace)
    if row.cell.outcome in ("unproven", "error") and (step := wording.format_next_step(run, row)):
        yield "next", step
    if trial is not None and trial.again:
        yield "reproduce", to_one_line(trial.again)
    if trial is not None and detail:
        names = (
            *standards.list_for_rule(run, row.cell.invariant),
            *standards.list_for_faults(wording.filter_met(trial.faults)),
        )
        yield from _list_details(standards.format_names(names), trial.trace)


def list_case_facts(
    case: Case, one: ReplicaRow, rules: cases.RuleFacts, *, room: int = ROOM, detail: bool = False
) -> Iterator[tuple[str, str]]:
    """Explain a case by one of its trials; `detail` adds standards and calls."""
    yield from cases.format_exchange(one, room)
    if obeyed := cases.format_obedience(one):
        yield "obeyed", obeyed
    if case.expected_failure:
        yield "was", to_one_line(case.expected_failure)
    for violation in cases.list_violations(one):
        yield "forbidden", to_one_line(violation)
    yield from _list_case_reasons(case, one, rules, obeyed=bool(obeyed))
    yield from _list_faults(one.seen.met)
    yield from _list_script(one.seen.trace)
    yield "reproduce", to_one_line(one.again)
    if detail:
        names = standards.format_names((*standards.list_for_case(case), *standards.list_for_faults(one.seen.met)))
        yield from _list_details(names, one.seen.trace)


def _list_case_reasons(
    case: Case, one: ReplicaRow, rules: cases.RuleFacts, *, obeyed: bool
) -> Iterator[tuple[str, str]]:
    unpassed = cases.list_unpassed(one)
    # The session itself was not replayed, so no rule says why it is unproven.
    if case.unproven_only and not any(verdict.outcome == "unproven" for verdict in unpassed):
        yield "because", to_one_line(case.reason)
        return
    label = "because"
    for sign, members in groupby(unpassed, lambda verdict: _build_reason_key(verdict, one)):
        yield label, _format_reason(sign, list(members), one, rules)
        label = ""
    ruled = any(verdict.outcome == cases.get_replica_outcome(one) for verdict in unpassed)
    if one.replica.reason and not (obeyed or ruled or any(cases.list_violations(one))):
        yield (
            "because",
            to_one_line(one.replica.reason),
        )  # no rule gave the reason: the attack could not be sent completely, for example


def _build_reason_key(verdict: Verdict, one: ReplicaRow) -> tuple[str, ...]:
    """Build the key that makes two verdicts one reason: a bad ending that fails both, otherwise the rule itself."""
    ended = bool(cases.format_ending(one)) and verdict.outcome == "fail"
    return (verdict.outcome, verdict.code, *verdict.key) if ended else (verdict.outcome, "", verdict.invariant)


def _format_reason(
    shared: tuple[str, ...], verdicts: Sequence[Verdict], one: ReplicaRow, rules: cases.RuleFacts
) -> str:
    first, *others = verdicts
    sign = wording.SIGNS[shared[0]]
    if others:
        names = ", ".join(verdict.invariant for verdict in verdicts)
        return f"{sign} {to_one_line(f'{names}: {first.reason}')}"
    return f"{sign} {to_one_line(rules.format_reason(first, one))}   {rules.format_place(first.invariant)}"


def _list_faults(met: Sequence[FaultMet]) -> Facts:
    more = f"; and {len(met) - _FAULTS} more" if len(met) > _FAULTS else ""
    return [("fault", to_one_line("; ".join(map(wording.format_fault, met[:_FAULTS])) + more))] if met else []


def _list_script(trace: Sequence[TraceEvent]) -> Facts:
    script = calls.format_script(trace)
    return [("model", to_one_line(script))] if script else []


def _list_details(known: str, trace: Sequence[TraceEvent]) -> Iterator[tuple[str, str]]:
    """Yield its entries in public lists, and one line for each call."""
    if known:
        yield "known as", known
    for n, event in enumerate(trace[: calls.SHOWN]):
        yield "" if n else "calls", to_one_line(calls.format_call(event))
    if more := calls.format_rest(trace):
        yield "", more


def _list_exchange(trial: TrialRow, room: int) -> Iterator[tuple[str, str]]:
    """Yield a bad ending, and what was asked and answered, turn by turn in a conversation."""
    if ended := wording.format_ending(trial.ending, trial.detail, trial.calls_made):
        yield "ended", ended
    if len(trial.turns) > 1:
        yield from cases.format_conversation(trial.turns, decided=trial.turn, answer=_format_excerpt(trial, room))
    else:
        yield "asked", to_one_line(trial.prompt)
        yield "answered", _format_excerpt(trial, room)


def _format_cell_reason(row: CellRow, trial: TrialRow | None) -> str:
    """Return the reason, with its turn if there are several."""
    if trial is None or row.cell.outcome != "fail" or not trial.reason:
        return wording.format_reason(row)
    in_turn = len(trial.turns) > 1 and trial.outcome == "fail"
    return f"turn {trial.turn + 1}: {trial.reason}" if in_turn else trial.reason


def _format_excerpt(trial: TrialRow, room: int) -> str:
    """Return the answer on one line; a long one is cut around the words that decided."""
    text = wording.format_answer(trial)
    if len(text) <= room:
        return to_one_line(text)
    start = max(0, trial.marks[0][0] - room // 3) if trial.marks else 0
    piece = to_one_line(text[start : start + room])
    return ("… " if start else "") + piece + (" …" if start + room < len(text) else "")
