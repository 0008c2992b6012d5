"""The story of a trial: one timeline of calls, faults, SQL and files, then the rules."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.report.safe import get_painter
from holdfast.report.terminal.trial_story import build_timeline, format_story


def call(ts: float, plane: str, tool: str, **more: Any) -> dict[str, Any]:
    known = {
        "n": 1,
        "retry": 0,
        "phase": "done",
        "status": None,
        "error_type": "",
        "failed": False,
        "fault": "",
        "script": "",
    }
    rest = {"input": "", "output": "", "cost": None, "times": 1, "event_type": "tool_call", "duration_ms": 1.0}
    return {"ts": ts, "plane": plane, "tool": tool, **known, **rest, **more}


def fault(mode: str, plane: str, target: str, **more: Any) -> dict[str, Any]:
    known = {"call": 1, "retry": 0, "effect": "met", "would": "a", "got": "b", "change": "", "note": ""}
    return {"mode": mode, "plane": plane, "target": target, "text": f"{plane} {mode}", **known, **more}


def deed(ts: float, kind: str, **details: Any) -> dict[str, Any]:
    return {"seq": 1, "ts": ts, "type": kind, "details": details}


def turn(asked: str, text: str | None, latency_ms: float = 100.0, **more: Any) -> dict[str, Any]:
    return {"asked": asked, "text": text, "latency_ms": latency_ms, "ending": "answered", "detail": "", **more}


def verdict(rule: str, outcome: str, **more: Any) -> dict[str, Any]:
    known = {"severity": "high", "where": "s.yaml:3", "reason": f"{rule} because", "marks": [], "turn": 0}
    return {"rule": rule, "outcome": outcome, **known, **more}


def trial(**more: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "id": "0123456789ab",
        "column": "down",
        "outcome": "fail",
        "ending": "answered",
        "detail": "",
    }
    empty: dict[str, Any] = {
        name: [] for name in ("faults", "trace", "audit", "files", "forbidden", "notes", "verdicts")
    }
    counts = {"trace_left_out": 0, "audit_left_out": 0, "again": "", "promote": ""}
    return {**known, **empty, **counts, "turns": [turn("q", "a")], **more}


def lines(document: dict[str, Any], width: int = 80, **more: bool) -> list[str]:
    return list(format_story(document, "0001", get_painter(False), width, **more))


def test_calls_deeds_and_turns_are_in_the_order_of_time() -> None:
    found = build_timeline(
        trial(
            trace=[call(0.03, "llm", "gpt"), call(0.01, "tool", "search")],
            audit=[
                deed(0.02, "db_write", service="db", table="t", op="insert", rows=1),
                deed(0.5, "file_write", path="x"),
            ],
        )
    )
    assert [step.lane for step in found] == ["asked", "tool", "sql", "model", "answered", "file"]
    assert [step.at_ms for step in found] == [0.0, 10.0, 20.0, 30.0, 100.0, 500.0]


def test_the_last_answer_comes_after_everything_that_the_agent_did() -> None:
    found = build_timeline(trial(trace=[call(2.0, "tool", "late")], audit=[deed(3.0, "command", argv=["x"])]))
    assert [step.lane for step in found] == ["asked", "tool", "command", "answered"]


@pytest.mark.parametrize(
    ("one", "at_call"),
    [
        (fault("error", "tool", "search"), True),
        (fault("error", "context", "search"), True),
        (fault("error", "tool", "other"), True),
        (fault("error", "tool", "search", call=2), False),
        (fault("error", "tool", "search", retry=1), False),
        (fault("slow", "tool", "search"), False),
    ],
)
def test_a_fault_is_reported_at_the_call_that_met_it_else_at_the_beginning(one: dict[str, Any], at_call: bool) -> None:
    found = build_timeline(trial(trace=[call(0.01, "tool", "search", fault="error+empty")], faults=[one]))
    on_call = [sign for step in found for sign, _ in step.more if sign == "◆"]
    assert (bool(on_call), found[0].lane == "fault") == (at_call, not at_call)


def test_a_request_that_proxy_and_audit_both_saw_is_told_once() -> None:
    url = "http://shop/pay"
    found = build_timeline(
        trial(
            trace=[call(0.01, "http", f"POST {url}", status=202)],
            audit=[deed(0.01, "http_call", method="POST", url=url), deed(0.02, "http_call", method="GET", url=url)],
        )
    )
    assert [step.text for step in found if step.lane == "http"] == [f"POST {url}  1 ms  202", f"GET {url}"]


def test_a_scripted_reply_names_its_script_and_line() -> None:
    (step,) = [
        s for s in build_timeline(trial(trace=[call(0.01, "llm", "gpt", script="m.yaml:3")])) if s.lane == "model"
    ]
    assert step.text.endswith("script m.yaml:3")


def test_a_fault_at_its_call_says_what_it_changed() -> None:
    change = "injected 503 (the tool was not called)"
    met = fault("error", "tool", "search", change=change)
    found = build_timeline(trial(trace=[call(0.01, "tool", "search", fault="error")], faults=[met]))
    assert ("◆", f"error: {change}") in found[1].more


def test_a_change_of_a_file_shows_its_lines() -> None:
    files = [{"path": "a.txt", "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new"}]
    (step,) = [
        s
        for s in build_timeline(trial(audit=[deed(1, "file_write", path="a.txt", op="changed")], files=files))
        if s.more
    ]
    assert step.more == (("-", "old"), ("+", "new"))


def test_the_words_that_decided_are_marked_wherever_they_are() -> None:
    text = "It 😀 costs $7.00 today"  # marks count as JavaScript does: the face is two
    start = len("It 😀 costs ".encode("utf-16-le")) // 2
    shown = lines(trial(turns=[turn("q", text)], verdicts=[verdict("r", "fail", marks=[[start, start + 5]])]))
    assert any("costs «$7.00» today" in line for line in shown)


def test_rules_that_failed_come_first_and_forbidden_ones_before_them() -> None:
    shown = lines(
        trial(
            verdicts=[verdict("held", "pass"), verdict("odd", "unproven"), verdict("broken", "fail")],
            forbidden=[{"rule": "http_except", "violated": True, "details": ["GET x"], "error": ""}],
        )
    )
    rules = [line.split()[1] for line in shown if line[:4].strip() in ("✘", "✔", "?") and line.startswith("  ")]
    assert rules == ["forbidden:", "broken", "odd", "held"]


def test_what_a_fault_changed_is_shown_in_full_and_the_rest_in_one_line() -> None:
    long = "word " * 60
    document = trial(
        trace=[call(0.01, "tool", "s", fault="error", input=long, output=long)],
        faults=[fault("error", "tool", "s", would=long, got="THE END")],
    )
    shown = lines(document)
    assert sum("word" in line for line in shown) < 12
    assert any("THE END" in line for line in lines(document, whole=True))
    assert max(map(len, shown)) <= 80


def test_no_line_is_wider_than_the_terminal_and_control_codes_are_shown() -> None:
    document = trial(
        turns=[turn("x" * 300, "\x1b[31mred\x1b[0m " * 40)],
        trace=[call(0.01, "tool", "t" * 200, input="i" * 300)],
        verdicts=[verdict("r" * 30, "fail", where="w" * 200, reason="because " * 50)],
    )
    for width in (60, 80, 120):
        shown = lines(document, width)
        assert max(map(len, shown)) <= width
        assert not any("\x1b" in line for line in shown)


def test_a_trial_without_an_answer_says_how_it_ended() -> None:
    shown = lines(trial(turns=[turn("q", None, ending="timeout", detail="after 10 s")]))
    assert any("(nothing)" in line for line in shown)
    assert any("! timeout: after 10 s" in line for line in shown)
