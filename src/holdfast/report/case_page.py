"""Cases as the page shows them: plain texts, cut to what a person reads."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.model.observation import FaultMet, Turn
from holdfast.model.run import CaseRow, ReplicaRow, Run
from holdfast.model.verdict import Verdict
from holdfast.model.world import AuditEvent, Evidence
from holdfast.report import calls, cases, cause_words, standards, wording
from holdfast.report.case_causes import CaseCause, case_causes
from holdfast.report.page.values import cut
from holdfast.report.page_data import encode_text
from holdfast.report.safe import one_line, visible

CASES, REPLICAS, EVENTS, CAUSES, MEMBERS = 200, 20, 200, 20, 100
"""How many the page holds of each; the run's folder has the rest, and the page says so."""
DEED = 500
"""Characters of what was done; how it ended comes after them."""
_BODIES = ("request_body", "response_body")


def rows(run: Run) -> dict[str, Any]:
    """The cases for the page's template; of very many, those that did not pass come first."""
    found: Sequence[CaseRow] = run.cases
    if len(found) > CASES:
        found = [*cases.troubled(run), *(row for row in run.cases if not cases.short(row.case))][:CASES]
    rules = cases.RuleFacts(run)
    return {
        "shown": [_case(row, rules) for row in found],
        "more": len(run.cases) - len(found),
        "causes": _causes(run, {id(row.case): n for n, row in enumerate(found)}, rules),
    }


def _causes(run: Run, places: Mapping[int, int], rules: cases.RuleFacts) -> list[dict[str, Any]]:
    """What several cases have in common; of one case its own entry says all."""
    shared = [cause for cause in case_causes(run) if len(cause.members) > 1]
    return [
        {
            "outcome": cause.outcome,
            "sign": wording.SIGNS[cause.outcome],
            "many": wording.plural(len(cause.members), cases.noun(run)),
            "rules": one_line(", ".join(cause.rules)),
            "description": one_line(rules.description(cause.rules[0])) if len(cause.rules) == 1 else "",
            "reason": one_line(cause.reason)[:300] + _beside(cause),
            "members": [
                (places.get(id(row.case), -1), one_line(cases.head(row.case))) for row in cause.members[:MEMBERS]
            ],
            "more": max(0, len(cause.members) - MEMBERS),
        }
        for cause in shared[:CAUSES]
    ]


def _beside(cause: CaseCause) -> str:
    other = cause_words.others(cause.reasons[0], cause.reasons)
    return f"   ({other})" if other else ""


def _case(row: CaseRow, rules: cases.RuleFacts) -> dict[str, Any]:
    case = row.case
    opened = next((n for n, one in enumerate(case.replicas) if one.status == case.status), 0)
    outcome = cases.outcome(case)
    return {
        "status": outcome,
        "sign": wording.SIGNS[outcome],
        "name": one_line(cases.head(case)),
        "composite": cases.composite(case.composite),
        "flaky": case.flaky,
        "known": standards.names(standards.of_case(case)),
        "why": one_line(case.reason)[:300],
        "replicas": [_replica(one, rules) for one in row.replicas[:REPLICAS]],
        "opened": opened,
        "more": max(0, len(row.replicas) - REPLICAS),
    }


def _replica(one: ReplicaRow, rules: cases.RuleFacts) -> dict[str, Any]:
    seen, outcome = one.seen, cases.replica_outcome(one)
    return {
        "status": outcome,
        "sign": wording.SIGNS[outcome],
        "trial": one.replica.trial,
        "number": one.replica.replica + 1,
        "composite": cases.composite(one.replica.composite),
        "asked": _text(one.prompt),
        "answered": _text(cases.answered(one, 20_000)),
        "turns": [(_text(turn.asked), _text(turn.text or "") or f"({turn.ending})") for turn in seen.turns[:EVENTS]]
        if len(seen.turns) > 1
        else [],
        "ended": [one_line(_ended(turn))[:DEED] for turn in seen.turns[:EVENTS]],
        "verdicts": [_verdict(verdict, seen.evidence.get(verdict.invariant), rules) for verdict in one.verdicts],
        "forbidden": [_forbidden(rule.rule, rule.violated, rule.error, rule.details) for rule in seen.forbidden],
        "faults": [_fault(met) for met in seen.ledger[:EVENTS]],
        "calls": [one_line(calls.call(event)) for event in seen.trace[: calls.SHOWN]],
        "audit": [_event(event, seen.at) for event in seen.audit[:EVENTS]],
        "audit_more": max(0, len(seen.audit) - EVENTS),
        "output": _text(seen.output),
        "notes": [one_line(note) for note in seen.notes],
        "again": one_line(one.again),
    }


def _fault(met: FaultMet) -> str:
    known = ", ".join(standards.ids(standards.of_faults([met])))
    return one_line(wording.fault(met) + (f" ({known})" if known else ""))


def _verdict(verdict: Verdict, evidence: Evidence | None, rules: cases.RuleFacts) -> dict[str, Any]:
    recorded = {} if evidence is None or evidence.data is None else {"recorded": evidence.data}
    return {
        "outcome": verdict.outcome,
        "sign": wording.SIGNS[verdict.outcome],
        "rule": one_line(verdict.invariant),
        "gate": rules.gate(verdict.invariant),
        "score": f"{verdict.score:g}",
        "reason": one_line(verdict.reason),
        "place": one_line(rules.place(verdict.invariant)),
        "evidence": _named(verdict.details or recorded),
    }


def _forbidden(rule: str, violated: bool, error: str, details: Sequence[str]) -> dict[str, str]:
    outcome = "error" if error else "fail" if violated else "pass"
    said = error or "; ".join(details) or "not violated"
    return {"outcome": outcome, "sign": wording.SIGNS[outcome], "rule": rule, "said": one_line(said)[:2000]}


def _event(event: AuditEvent, began: float) -> dict[str, Any]:
    return {
        "when": f"{event.ts - began:.3f} s" if began else str(event.seq),
        "type": event.type,
        "what": one_line(_deed(event))[:DEED],
        "end": _end(event),
        "bodies": _named({name: event.details[name] for name in _BODIES if event.details.get(name)}),
    }


def _deed(event: AuditEvent) -> str:
    """What was done, in a few words."""
    details = event.details
    match event.type:
        case "command":
            return f"$ {shlex.join(map(str, details.get('argv', ())))}"
        case "file_write":
            return f"{details.get('op', '')} {details.get('path', '')}"
        case "db_write":
            return f"{details.get('op', '')} {details.get('service', '')}.{details.get('table', '')}: {_rows(details)}"
        case "http_call":
            return f"{details.get('method', '')} {details.get('url', '')} {details.get('status', '')}".rstrip()


def _end(event: AuditEvent) -> dict[str, Any]:
    """How a command ended; nothing for any other deed."""
    if event.type != "command":
        return {}
    code, took_ms = event.details.get("exit_code"), event.details.get("duration_ms")
    if isinstance(code, int):
        return {"said": f"exit {code}", "bad": code != 0}
    unknown = not isinstance(took_ms, int | float)
    return {"said": "end not known" if unknown else "ended by a signal", "bad": not unknown}


def _ended(turn: Turn) -> str:
    """How one turn of the agent ended: a command's exit code, a signal, a status, a timeout."""
    detail = f": {turn.detail}" if turn.detail else ""
    return f"{turn.ending}{detail}, after {turn.latency_ms / 1000:.2f} s"


def _rows(details: Mapping[str, Any]) -> str:
    rows = details.get("rows")
    return wording.plural(rows, "row") if isinstance(rows, int) else "rows unknown"


def _named(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(one_line(str(name)), _text(_shown(value))) for name, value in values.items()]


def _shown(value: Any) -> str:
    """A text as it is, a list an item a line, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and value:
        return "\n".join(item if isinstance(item, str) else encode_text(item) for item in value)
    return encode_text(value)


def _text(text: str) -> str:
    return visible(cut(text), keep="\n\t")
