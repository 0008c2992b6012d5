"""Audit logs and evidence of a stored trial: apart from the record, whole, masked, and not to be forged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.model.observation import ForbiddenResult, Observation, Turn
from holdfast.model.world import AuditEvent, Evidence, Isolation
from holdfast.secrets.masker import MASK, Masker
from holdfast.store.blobs import LIMIT
from holdfast.store.record import RunRecord, read_observations
from holdfast.store.rundir import RunDir
from holdfast.store.traces import AUDIT_LOST

ID = "0123456789ab"
AUDIT = (
    AuditEvent(1.5, 1, "command", {"argv": ["psql", "-c", "select 'hunter22'"], "cwd": "/workspace"}),
    AuditEvent(2.5, 2, "http_call", {"method": "POST", "url": "http://smtp/", "request_body": "hunter22"}),
)


def seen(**more: Any) -> Observation:
    return Observation(ID, turns=(Turn("q", "a"),), audit=AUDIT, **more)


def stored(tmp_path: Path, *found: Observation) -> RunDir:
    run = RunDir(tmp_path)
    record = RunRecord(run)
    for one in found:
        record.write_observation(one)
    record.close()
    return run


def test_the_audit_log_lies_in_a_file_of_its_own_and_comes_back(tmp_path: Path) -> None:
    run = stored(tmp_path, seen())
    lines = (tmp_path / "audit" / f"{ID}.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert b"hunter22" not in (tmp_path / "observations-0.jsonl").read_bytes()
    (bare,) = read_observations(run, traces=False)
    assert (bare.audit, bare.audited) == ((), 2)
    (whole,) = read_observations(run)
    assert whole == seen()


def test_a_trial_that_is_run_again_leaves_its_last_log(tmp_path: Path) -> None:
    again = Observation(ID, audit=AUDIT[:1])
    run = stored(tmp_path, seen(), again)
    assert list(read_observations(run))[1] == again


@pytest.mark.parametrize("damage", ["gone", "forged", "longer"])
def test_a_log_that_was_touched_is_an_error_and_not_judged_on(tmp_path: Path, damage: str) -> None:
    run = stored(tmp_path, seen())
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
    run = stored(tmp_path, found)
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
