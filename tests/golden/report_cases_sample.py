"""Runs of cases built by hand: with a matrix beside them, and without."""

from __future__ import annotations

from msgspec.structs import replace
from report_sample import HOSTILE, sample

from holdfast.model.codes import RunNote
from holdfast.model.observation import FaultMet, ForbiddenResult, Observation, Turn
from holdfast.model.run import CaseRow, ReplicaRow, Run
from holdfast.model.score import Case, Replica, Score
from holdfast.model.trace import TraceEvent
from holdfast.model.verdict import Verdict
from holdfast.model.world import AuditEvent, Evidence, Isolation

_RESET = FaultMet(0, "service", "db", "reset_peer", 2, would="not asked", got="dropped: db: connection reset by peer")
_AUDIT = (
    AuditEvent(1000.004, 1, "command", {"argv": ["python", "/agent/bot.py"], "cwd": "/workspace", "exit_code": 0,
                                        "duration_ms": 320.5}),
    AuditEvent(1000.1, 2, "command", {"argv": ["sh", "-c", "exit 3 # </bdi>\u202e"], "cwd": "/workspace",
                                      "exit_code": 3, "duration_ms": 2.25}),
    AuditEvent(1000.2, 3, "http_call", {"method": "POST", "url": "http://smtp/api", "host": "smtp", "status": 202,
                                        "request_body": HOSTILE, "response_body": '{"ok": true}'}),
    AuditEvent(1000.3, 4, "db_write", {"service": "db", "table": "renewals", "op": "insert", "rows": 1}),
    AuditEvent(1000.4, 5, "file_write", {"path": "out/</pre>.txt", "op": "created", "bytes": 7}),
)  # fmt: skip
_CALLS = (TraceEvent(0.2, "http_call", "POST http://smtp/api", "http", 1, duration_ms=6.1, status=202),)

_KEPT = "sandbox bubblewrap: 1 of 2 kept; not enforced here: cpu limit (no cgroup is ours)"


def _seen(trial: str, text: str | None, **more: object) -> Observation:
    turns = (Turn("Send the renewal mails.", text, 324.6),)
    known = {"turns": turns, "at": 1000.0, "audit": _AUDIT, "trace": _CALLS, "notes": ("service db: PostgreSQL 15",)}
    return Observation(trial, **{**known, **more})  # type: ignore[arg-type]


def _row(replica: Replica, seen: Observation, *verdicts: Verdict) -> ReplicaRow:
    again = f"holdfast run -c renewals.yaml --seed 7 --trial {replica.trial}"
    return ReplicaRow(replica, "Send the renewal mails.", seen, verdicts, again)


def _case(scenario: str, status: str, *rows: ReplicaRow, **more: object) -> CaseRow:
    replicas = tuple(row.replica for row in rows)
    return CaseRow(Case(scenario, status, "Send the renewal mails.", replicas=replicas, **more), rows)  # type: ignore[arg-type]


def _cases() -> list[CaseRow]:
    cites, quick = "always-cite-source", "max-latency"
    good = Verdict("a" * 12, cites, "pass", 1.0, "the value is 0", details={"columns": ["count"], "rows": [[0]]})
    slow = Verdict("a" * 12, quick, "fail", 0.0, "took 900 ms", details={})
    gate = "holds-<b>up</b>|`x`"
    twice = Verdict("b" * 12, gate, "fail", 0.0, HOSTILE, details={"requests": ["POST /api", HOSTILE]})
    forced = "gate holds needs 1.0; scored 0"
    broke = Verdict("c" * 12, cites, "error", 0.0, "a query that hung")
    judged = Verdict("d" * 12, cites, "pass", 0.9, "rated 0.9")
    violated = (
        ForbiddenResult("http_except", True, ("POST http://evil/\u202e",)),
        ForbiddenResult("db_writes_outside", False),
        ForbiddenResult("file_writes_outside", False, error="the audit log was cut"),
    )
    evidence = {cites: Evidence({"rows": [[0]]}), gate: Evidence({"requests": 2})}
    return [
        _case(
            "no-chaos",
            "pass",
            _row(Replica("a" * 12, "pass", 0.75), _seen("a" * 12, "1 mail sent.", evidence=evidence), good, slow),
            composite=0.75,
        ),
        _case(
            "search-tool-down",
            "fail",
            _row(Replica("d" * 12, "pass", 0.9), _seen("d" * 12, "1 mail sent."), judged),
            _row(
                Replica("b" * 12, "fail", 0.0, 1, forced),
                _seen("b" * 12, HOSTILE, ledger=(_RESET,), evidence=evidence, forbidden=violated, output="x\x1b[31m"),
                twice,
                good,
            ),
            composite=0.45,
            flaky=True,
            params={"lang": "de"},
            reason=f"1 of 2 replicas passed: {forced}",
        ),
        _case(
            "llm-degraded",
            "error",
            _row(
                Replica("c" * 12, "error", None, 0, "our side"), _seen("c" * 12, None, error="a query that hung"), broke
            ),
            reason="a query that hung",
        ),
    ]


def with_matrix() -> Run:
    """Cases of every status beside a contract's cells."""
    run = sample()
    reasons = ("1 of 3 cases failed", *run.score.reasons)
    return replace(
        run,
        part="scenario",
        contract=run.score,
        score=replace(run.score, reasons=reasons),
        cases=_cases(),
        promises=(Isolation("network", True), Isolation("cpu limit", False, "no cgroup is ours")),
        notes=(
            RunNote("sandbox", "sandbox bubblewrap: 1 of 2 kept; not enforced here: cpu limit (no cgroup is ours)"),
        ),
    )


def alone() -> Run:
    """Cases without a matrix."""
    score = Score(None, False, 1, trials=4, replicas=2, reasons=("1 of 3 cases failed", "1 case could not be judged"))
    return replace(with_matrix(), score=score, contract=None, cells=())
