"""Traces lie in files of their own, whole, private, and come back with the observation."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.model.observation import ForbiddenResult, Observation, Turn
from holdfast.model.trace import Cost, TraceEvent
from holdfast.model.world import AuditEvent, Evidence, Isolation
from holdfast.secrets.masker import MASK, Masker
from holdfast.store.blobs import LIMIT
from holdfast.store.record import RunRecord, read_observations
from holdfast.store.rundir import RunDir
from holdfast.store.traces import AUDIT_LOST, TRACE_LOST

ID = "0123456789ab"
EVENTS = (
    TraceEvent(0.1, "tool_call", "look", "tool", 1, input='{"q":1}', write=True),
    TraceEvent(0.2, "llm_call", "small-1", "llm", 1, cost=Cost("small-1", 10, 5, 0.1)),
)
SEEN = Observation(ID, (Turn("hi", "answer"),), trace=EVENTS, duration_ms=3.0)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir.create(tmp_path)


def stored(run: RunDir) -> Observation:
    *_, last = read_observations(run)
    return last


def record(run: RunDir, seen: Observation, *written: TraceEvent) -> None:
    kept = RunRecord(run)
    for event in written:
        kept.write_event(seen.trial, event)
    kept.write_observation(seen)
    kept.close()


def test_an_event_is_on_disk_as_it_happens_and_only_its_owner_can_read_it(run: RunDir) -> None:
    kept = RunRecord(run)
    kept.write_event(ID, EVENTS[0])
    file = run.path / "traces" / f"{ID}.jsonl"
    assert file.read_bytes().count(b"\n") == 1
    assert os.stat(file).st_mode & 0o777 == 0o600
    assert os.stat(file.parent).st_mode & 0o777 == 0o700
    kept.close()


@pytest.mark.parametrize("is_full_at_the_end", [False, True])
def test_a_full_disk_is_an_error_when_the_trace_is_finished_not_in_the_callback_of_an_event(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, is_full_at_the_end: bool
) -> None:
    def refuse(fd: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    kept = RunRecord(run)
    kept.write_event(ID, EVENTS[0])
    with monkeypatch.context() as full:
        full.setattr("holdfast.store.traces.write_all", refuse)
        kept.write_event(ID, EVENTS[1])
        if is_full_at_the_end:
            with pytest.raises(OSError, match="No space"):
                kept.write_observation(SEEN)
    if not is_full_at_the_end:
        kept.write_observation(SEEN)
        assert stored(run) == SEEN
    kept.close()


def test_the_observations_own_line_leaves_the_trace_out_and_readers_attach_it(run: RunDir) -> None:
    record(run, SEEN, *EVENTS)
    line = (run.path / "observations-0.jsonl").read_bytes()
    assert b"look" not in line
    assert b'"events":2' in line
    assert stored(run) == SEEN
    assert next(read_observations(run, traces=False)).trace == ()


def test_a_trace_that_nobody_wrote_as_it_happened_is_written_at_the_end(run: RunDir) -> None:
    record(run, SEEN)
    assert stored(run) == SEEN


def test_events_that_ended_in_another_order_come_back_in_the_order_they_began(run: RunDir) -> None:
    record(run, SEEN, EVENTS[1], EVENTS[0])
    assert stored(run).trace == EVENTS


def test_a_trial_that_was_repeated_has_only_its_last_attempts_events(run: RunDir) -> None:
    last = replace(SEEN, trace=EVENTS[1:], attempts=2)
    record(run, last, *EVENTS)
    assert stored(run) == last
    assert (run.path / "traces" / f"{ID}.jsonl").read_bytes().count(b"\n") == 1


def test_a_torn_trace_of_a_trial_that_is_run_again_is_replaced(run: RunDir) -> None:
    (run.path / "traces").mkdir()
    (run.path / "traces" / f"{ID}.jsonl").write_bytes(b'{"ts":9.0,"event_type":"tool_call"}\n{"ts":')
    record(run, SEEN, *EVENTS)
    assert stored(run) == SEEN


@pytest.mark.parametrize("damage", [b"", b"not json\n", b'{"ts":9.0,"event_type":"tool_call"}\n'])
def test_a_lost_or_damaged_trace_is_an_error_never_a_guess(run: RunDir, damage: bytes) -> None:
    record(run, SEEN, *EVENTS)
    (run.path / "traces" / f"{ID}.jsonl").write_bytes(damage)
    assert stored(run).error == TRACE_LOST
    (run.path / "traces" / f"{ID}.jsonl").unlink()
    assert stored(run).error == TRACE_LOST


def test_an_inline_agents_events_stay_in_the_observation(run: RunDir) -> None:
    kept = RunRecord(run, inline=True)
    kept.write_event(ID, EVENTS[0])
    kept.write_observation(SEEN)
    kept.close()
    assert not (run.path / "traces").exists()
    assert stored(run) == SEEN


@pytest.mark.parametrize("id", ["../../evil", "a/b", "..", "", "A B"])
def test_a_name_that_is_no_id_leads_nowhere(run: RunDir, id: str) -> None:
    record(run, replace(SEEN, trial=id), *EVENTS)
    assert not (run.path / "traces").exists()
    assert stored(run).trace == EVENTS
    forged = b'{"trial":"%s","events":2}\n' % id.encode()
    (run.path / "observations-0.jsonl").write_bytes(forged)
    assert stored(run).error == TRACE_LOST


def test_a_link_in_the_place_of_a_trace_is_not_followed(run: RunDir, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (run.path / "traces").mkdir()
    (run.path / "traces" / f"{ID}.jsonl").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic"):
        record(run, SEEN, *EVENTS)
    assert victim.read_text() == "mine"


def test_a_secret_is_masked_in_events_and_words_of_ours_are_not() -> None:
    event = replace(EVENTS[0], input='{"key":"llm_call-secret"}', output="llm_call-secret", phase="unfinished")
    masked = Masker(["llm_call-secret", "unfinished"]).mask_struct(event)
    assert "secret" not in masked.input + masked.output
    assert masked.phase == "unfinished"


def test_an_event_that_comes_after_its_trial_was_stored_destroys_nothing(run: RunDir) -> None:
    from holdfast.store.traces import Traces, read_details

    traces = Traces(run)
    for event in EVENTS:
        traces.write(ID, event)
    kept = traces.finish(SEEN)
    traces.write(ID, EVENTS[0])
    traces.close()
    assert read_details(run, kept).trace == EVENTS


# Audit logs and evidence of a stored trial: apart from the record, whole, masked, and not to be forged.


AUDIT = (
    AuditEvent(1.5, 1, "command", {"argv": ["psql", "-c", "select 'hunter22'"], "cwd": "/workspace"}),
    AuditEvent(2.5, 2, "http_call", {"method": "POST", "url": "http://smtp/", "request_body": "hunter22"}),
)


def seen(**more: Any) -> Observation:
    return Observation(ID, turns=(Turn("q", "a"),), audit=AUDIT, **more)


def written_run(tmp_path: Path, *found: Observation) -> RunDir:
    run = RunDir(tmp_path)
    record = RunRecord(run)
    for one in found:
        record.write_observation(one)
    record.close()
    return run


def test_the_audit_log_lies_in_a_file_of_its_own_and_comes_back(tmp_path: Path) -> None:
    run = written_run(tmp_path, seen())
    lines = (tmp_path / "audit" / f"{ID}.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert b"hunter22" not in (tmp_path / "observations-0.jsonl").read_bytes()
    (bare,) = read_observations(run, traces=False)
    assert (bare.audit, bare.audited) == ((), 2)
    (whole,) = read_observations(run)
    assert whole == seen()


def test_a_trial_that_is_run_again_leaves_its_last_log(tmp_path: Path) -> None:
    again = Observation(ID, audit=AUDIT[:1])
    run = written_run(tmp_path, seen(), again)
    assert list(read_observations(run))[1] == again


@pytest.mark.parametrize("damage", ["gone", "forged", "longer"])
def test_a_log_that_was_touched_is_an_error_and_not_judged_on(tmp_path: Path, damage: str) -> None:
    run = written_run(tmp_path, seen())
    file = tmp_path / "audit" / f"{ID}.jsonl"
    if damage == "gone":
        file.unlink()
    elif damage == "forged":
        file.write_text(file.read_text().replace("smtp", "smpt"))
    else:
        file.write_text(file.read_text() * 2)
    (found,) = read_observations(run)
    assert (found.error, found.audit) == (AUDIT_LOST, ())


def test_long_evidence_is_a_blob(tmp_path: Path) -> None:
    text = "x" * (LIMIT + 1)
    found = Observation(ID, evidence={"r": Evidence({"content": text, "rows": [[1, None]]})})
    run = written_run(tmp_path, found)
    assert (tmp_path / "observations-0.jsonl").stat().st_size < LIMIT
    assert list(read_observations(run)) == [found]


def test_secrets_are_masked_in_audit_evidence_and_forbidden_details() -> None:
    found = seen(
        evidence={"r": Evidence({"rows": [["hunter22"]]}), "s": Evidence(error="no hunter22")},
        forbidden=(ForbiddenResult("secrets_in_logs", True, ("its answer has hunter22",)),),
        isolation=(Isolation("network", False, "hunter22"),),
    )
    shown = Masker(["hunter22"]).mask_observation(found)
    assert "hunter22" not in str(shown)
    assert shown.evidence["r"].data == {"rows": [[MASK]]}
    assert shown.forbidden[0].rule == "secrets_in_logs"
    assert [event.type for event in shown.audit] == ["command", "http_call"]
