"""A case on the page: how what the agent ran came to its end."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from report_cases_sample import alone
from report_sample import whole

from holdfast.model.observation import Observation, Turn
from holdfast.model.run import CaseRow, ReplicaRow, Run
from holdfast.model.score import Case, Replica
from holdfast.model.world import AuditEvent
from holdfast.report import case_page
from holdfast.report.html import Html

TRIAL = "a" * 12


@pytest.fixture
def page() -> Any:
    """What the page has of one trial, and the page itself."""

    def shown(*audit: AuditEvent, turns: tuple[Turn, ...] = ()) -> tuple[dict[str, Any], str]:
        replica = Replica(TRIAL, "pass", 1.0)
        row = ReplicaRow(replica, "go", Observation(TRIAL, turns, audit=audit), (), "holdfast run")
        run: Run = replace(alone(), cases=[CaseRow(Case("s", "pass", "go", replicas=(replica,)), [row])])
        found = case_page.rows(run)["shown"][0]["replicas"][0]
        return found, whole(Html(), run).decode()

    return shown


def command(*argv: str, code: int | None = 0, took_ms: float | None = 1.0) -> AuditEvent:
    return AuditEvent(1.0, 1, "command", {"argv": [*argv], "cwd": "/", "exit_code": code, "duration_ms": took_ms})


@pytest.mark.parametrize(
    ("code", "took_ms", "said", "bad"),
    [
        (0, 1.0, "exit 0", False),
        (1, 1.0, "exit 1", True),
        (None, 1.0, "ended by a signal", True),
        (None, None, "end not known", False),
    ],
)
def test_a_command_has_its_end(page: Any, code: int | None, took_ms: float | None, said: str, bad: bool) -> None:
    found, html = page(command("sh", "-c", "a b", code=code, took_ms=took_ms))
    assert found["audit"][0]["what"] == "$ sh -c 'a b'"
    assert found["audit"][0]["end"] == {"said": said, "bad": bad}
    assert f"→ {said}</span>" in html


def test_a_long_command_keeps_its_end_and_a_hostile_one_its_place(page: Any) -> None:
    found, html = page(command("echo", "</bdi><script>x()</script>\x1b\n" + "x" * 5_000, code=7))
    assert len(found["audit"][0]["what"]) == case_page.DEED
    assert found["audit"][0]["end"]["said"] == "exit 7"
    assert "<script>x()" not in html
    assert "\x1b" not in html


def test_other_deeds_have_no_end(page: Any) -> None:
    found, _ = page(AuditEvent(1.0, 1, "file_write", {"path": "a", "op": "created", "bytes": 1}))
    assert found["audit"][0]["end"] == {}


def test_every_turn_has_its_end(page: Any) -> None:
    turns = (Turn("a", "ok", 1_250.0), Turn("b", None, 30.0, "crashed", "exit code 3: no such file <x>"))
    found, html = page(turns=turns)
    assert found["ended"] == ["answered, after 1.25 s", "crashed: exit code 3: no such file <x>, after 0.03 s"]
    assert "no such file &lt;x&gt;" in html


def test_many_turns_and_a_long_end_are_cut(page: Any) -> None:
    found, _ = page(turns=(Turn("a", None, 1.0, "crashed", "x" * 9_000),) * 500)
    assert len(found["ended"]) == case_page.EVENTS
    assert max(map(len, found["ended"])) == case_page.DEED


def test_what_is_unproven_has_its_own_badge(page: Any) -> None:
    replica = Replica(TRIAL, "error", None, 0, "the attack was not put whole")
    broken = replace(replica, trial="b" * 12, replica=1, reason="the gateway broke")
    rows = [
        ReplicaRow(replica, "go", Observation(TRIAL, ()), (), "holdfast run"),
        ReplicaRow(broken, "go", Observation("b" * 12, (), error="the gateway broke"), (), "holdfast run"),
    ]
    case = Case("s", "error", "go", unproven_only=True, replicas=(replica, broken))
    run: Run = replace(alone(), cases=[CaseRow(case, rows)])
    shown = case_page.rows(run)["shown"][0]
    assert (shown["status"], shown["sign"]) == ("unproven", "?")
    assert [(one["status"], one["sign"]) for one in shown["replicas"]] == [("unproven", "?"), ("error", "!")]
    assert (
        '<span class="badge unproven"><span aria-hidden="true">?</span> unproven</span>' in whole(Html(), run).decode()
    )
