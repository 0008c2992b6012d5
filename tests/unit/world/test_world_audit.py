"""The audit log of a trial: in order, and bounded."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from holdfast.model.trace import EVENTS_KEPT as CALLS_KEPT
from holdfast.model.trace import TraceEvent
from holdfast.model.world import AUDIT_KEPT, AuditSettings
from holdfast.protocols.sandbox import CommandEnd, FileChange
from holdfast.world.audit import AuditLog
from world_kit import FakeMock, request

CALL = TraceEvent(0.5, "http_call", "GET http://smtp/", plane="http")


def test_a_flood_of_one_type_hides_no_other(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", AuditSettings())
    for n in range(AUDIT_KEPT + 5):
        log.record_command(["true"], "/", float(n))
    log.record_files([FileChange("etc/x", "created", 3)])
    events = log.close()
    assert log.cut == {"command"}
    assert [event.details["path"] for event in events if event.type == "file_write"] == ["etc/x"]
    assert len(events) == AUDIT_KEPT + 1
    assert (tmp_path / "audit.jsonl").read_bytes().count(b"\n") == AUDIT_KEPT + 1


def test_calls_that_are_not_in_the_trace_are_missing_here_too(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", AuditSettings())
    log.record_calls([CALL], 100.0, {})
    assert not log.cut
    log.record_calls([CALL] * CALLS_KEPT, 100.0, {})
    assert log.cut == {"http_call"}


def test_what_is_not_wanted_is_not_kept(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", AuditSettings(http_calls=False))
    log.record_calls([CALL] * CALLS_KEPT, 100.0, {})
    assert (log.close(), log.cut) == ((), set())


def test_a_command_has_its_end_or_none(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", AuditSettings())
    late, early = (log.record_command([name], "/", ts) for name, ts in (("late", 2.0), ("early", 1.0)))
    early(CommandEnd(3, 0.123456))
    log.record_command(["never"], "/", 3.0)
    late(CommandEnd(None, 5.0))
    told = [(e.details["argv"], e.details["exit_code"], e.details["duration_ms"]) for e in log.close()]
    assert told == [(["early"], 3, 0.123), (["late"], None, 5.0), (["never"], None, None)]


def test_a_call_that_a_fault_answered_was_not_received_and_takes_no_record_of_another(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", AuditSettings())
    mock = FakeMock(request("GET", "/", body="real", status=202))
    log.record_calls([replace(CALL, unsent=True, status=200), replace(CALL, ts=0.7, status=None)], 0.0, {"smtp": mock})
    told = [(e.details["received"], e.details.get("answered"), e.details["request_body"]) for e in log.close()]
    assert told == [(False, None, ""), (True, 202, "real")]
