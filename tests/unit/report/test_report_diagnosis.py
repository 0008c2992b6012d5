"""How a diagnosis is shown: aligned lines with a sign and a word, a fix for what is broken, and an exit code."""

import pytest

from golden_words import Golden
from holdfast.report.terminal.diagnosis import AskedAgent, CallsSeen, Diagnosis, DoctorFinding, Sheet, build_document

OK = DoctorFinding("http", "ok", "route-works", "met", took_ms=12.3, exit_code=3)
NOT = DoctorFinding("https", "not", "proxy-bypassed", "it went around", "set HTTPS_PROXY", 3, 1.0)
IDLE = DoctorFinding("node", "not", "fault-not-met", "old", "a newer one")
SPEC = DoctorFinding("agent.command", "not", "program-missing", "no such program", "install it", 4)
OPEN = DoctorFinding("storm waits for mail", "unproven", "target-not-called", "not called", "ask for it")
NONE = DoctorFinding("curl", "n/a", "route-absent", "not installed")


def sheet(**how):
    return Sheet(**{"width": 80, "color": False, **how})


def test_a_part_is_aligned_with_sign_word_and_fix(golden: Golden):
    text = sheet().format_part("machine", "tried", (OK, NOT, NONE, OPEN), ("a note",))
    golden(text.splitlines())


def test_long_names_and_words_are_folded_and_control_codes_are_shown():
    long = DoctorFinding("n" * 60, "ok", "route-works", "word " * 30 + "\x1b[31m")
    text = sheet().format_part("spec", "", (long,))
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "\\x1b[31m" in text


def test_colour():
    assert "\x1b[32m" in sheet(color=True).format_part("a", "", (OK,))


@pytest.mark.parametrize(
    ("findings", "code"),
    [((OK, NONE, OPEN), 0), ((OK, IDLE), 0), ((OK, NOT), 3), ((NOT, SPEC), 4), ((SPEC,), 4)],
)
def test_the_exit_code_is_that_of_what_is_needed_and_broken(findings, code):
    found = Diagnosis((), findings)
    assert found.exit_code == code
    assert sheet().format_verdict(found).startswith("✘" if code else "✔")
    assert Diagnosis((), (), AskedAgent("hi", findings=findings)).exit_code == code


def test_the_verdict_names_what_is_broken_and_what_is_open(golden: Golden):
    found = (Diagnosis((NOT,), (SPEC,)), Diagnosis((OK,), (OPEN,)), Diagnosis((OK,)))
    golden([sheet().format_verdict(one) for one in found])


def test_json_has_three_parts():
    made = build_document(
        Diagnosis((OK, NONE), (NOT,), AskedAgent("hi", "answered", calls=(CallsSeen("llm", "m", 2),), findings=(OPEN,)))
    )
    assert made["machine"][0] == {
        "route": "http", "ok": True, "outcome": "ok", "detail": "met", "fix": "", "code": "route-works",
        "needed": True, "took_ms": 12.3,
    }  # fmt: skip
    assert [made["machine"][1]["ok"], made["spec"][0]["ok"], made["agent"]["findings"][0]["ok"]] == [None, False, None]
    assert list(made["agent"]["calls"]) == [{"plane": "llm", "target": "m", "calls": 2, "retries": 0, "tokens": 0}]
    assert made["exit_code"] == 3
    assert build_document(Diagnosis(()))["spec"] is None
