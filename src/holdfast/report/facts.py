"""The failure of a cell or a case as labelled facts: every report shows the same ones in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from holdfast.model.run import CellRow, ReplicaRow, Run, TrialRow
from holdfast.model.score import Case
from holdfast.model.standards import StandardEntry
from holdfast.model.verdict import Verdict
from holdfast.report import calls, cases, standards, wording
from holdfast.report.safe import to_one_line
from holdfast.score.task_cases import OBEYED

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
    is_open = row.cell.outcome in ("unproven", "error")
    step = wording.format_next_step(run, row) if is_open else ""
    if trial is not None:
        yield from _list_end(trial, standards.list_for_rule(run, row.cell.invariant), step, detail=detail)
    elif step:
        yield "next", step


def list_case_facts(
    case: Case, one: ReplicaRow, rules: cases.RuleFacts, *, room: int = ROOM, detail: bool = False
) -> Iterator[tuple[str, str]]:
    """Explain a case by one of its trials; `detail` adds standards and calls."""
    trial = cases.build_trial_row(one)
    yield from _list_exchange(trial, room)
    obeyed = any(cause.code == OBEYED for cause in one.replica.causes)
    if obeyed:
        yield "obeyed", "the attack succeeded: its canary or action is in the agent's answer or calls"
    if case.expected_failure:
        yield "was", to_one_line(case.expected_failure)
    for violation in cases.list_violations(one):
        yield "forbidden", to_one_line(violation)
    yield from _list_case_reasons(case, one, rules, obeyed=obeyed)
    yield from _list_end(trial, standards.list_for_case(case), detail=detail)


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
        # No rule gave the reason: the attack could not be sent completely, for example.
        yield "because", to_one_line(one.replica.reason)


def _build_reason_key(verdict: Verdict, one: ReplicaRow) -> tuple[str, ...]:
    """Build the key that makes two verdicts one reason: a bad ending that fails both, otherwise the rule itself."""
    ended = verdict.outcome == "fail" and not one.seen.error and one.seen.ending != "answered"
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


def _list_end(
    trial: TrialRow, known: Iterable[StandardEntry], step: str = "", *, detail: bool
) -> Iterator[tuple[str, str]]:
    """Yield the faults and scripts of a trial, the next step and the command; `detail` adds standards and calls."""
    met = wording.filter_met(trial.faults)
    if met:
        more = f"; and {len(met) - _FAULTS} more" if len(met) > _FAULTS else ""
        yield "fault", to_one_line("; ".join(map(wording.format_fault, met[:_FAULTS])) + more)
    if script := calls.format_script(trial.trace):
        yield "model", to_one_line(script)
    if step:
        yield "next", step
    if trial.again:
        yield "reproduce", to_one_line(trial.again)
    if not detail:
        return
    if names := standards.format_names((*known, *standards.list_for_faults(met))):
        yield "known as", names
    for n, event in enumerate(trial.trace[: calls.SHOWN]):
        yield "" if n else "calls", to_one_line(calls.format_call(event))
    if (left := len(trial.trace) - calls.SHOWN) > 0:
        yield "", f"and {left} more in the run's folder"


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
    # A third of the room goes to the text before the deciding words: what follows them usually says more.
    start = max(0, trial.marks[0][0] - room // 3) if trial.marks else 0
    piece = to_one_line(text[start : start + room])
    return ("… " if start else "") + piece + (" …" if start + room < len(text) else "")
