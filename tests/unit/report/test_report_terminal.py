import re
from typing import Any

import msgspec
import pytest
from report_sample import cell, large, sample, trial

from golden_words import Golden
from holdfast.model.codes import RunNote
from holdfast.model.observation import FaultMet
from holdfast.model.run import CellRow, Run
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.score import Interval
from holdfast.report.terminal.summary import format_summary


def text(run: Run, **settings: object) -> str:
    return format_summary(run, **{"width": 100, "color": False, **settings})  # type: ignore[arg-type]


def scored(**changes: object) -> Run:
    run = sample()
    return msgspec.structs.replace(run, score=msgspec.structs.replace(run.score, **changes))


def unproven(scenario: str, code: str) -> CellRow:
    return cell("max-latency", scenario, "unproven", trial("1", "unproven", "hi"), code=code, unproven=1)


def test_a_bad_ending_comes_first(golden: Golden) -> None:
    said = "it was ended after 270 calls, the last: llm m"
    late = trial("1", "fail", "half", ending="timeout", detail="no answer within 9 ms", calls_made=said)
    rows = [cell("max-latency", "no-chaos", "fail", late, fails=1)]
    block = text(msgspec.structs.replace(sample(), cells=rows)).splitlines()
    at = next(n for n, line in enumerate(block) if line.startswith("✘ max-latency"))
    golden(block[at : at + 4])


def test_met_lists_only_what_was_met() -> None:
    idle = FaultMet(0, "llm", "m", "garbage", 1, effect="no_effect")
    felt = FaultMet(0, "llm", "m", "empty", 2)
    for faults, shown in (((idle, felt), ["llm m, call 2: empty"]), ((idle,), [])):
        rows = [cell("max-latency", "no-chaos", "fail", trial("1", "fail", "half", faults=faults), fails=1)]
        lines = text(msgspec.structs.replace(sample(), cells=rows)).splitlines()
        assert [line.split("fault      ")[1] for line in lines if line.startswith("  fault ")] == shown


def next_steps(run: Run) -> list[str]:
    """The steps that the summary suggests, each on one line."""
    return [" ".join(step.split()) for step in re.findall(r"^  next (.*(?:\n {13}.*)*)", text(run), re.M)]


LATE = Scenario("late", (Injection("world", "clock", "skew"),))


@pytest.mark.parametrize(
    ("row", "changes"),
    [
        (cell("max-latency", "late", "unproven", trial("1", "unproven", "hi"), unproven=1), {"scenarios": (LATE,)}),
        (unproven("no-chaos", "no-answer"), {}),
        (unproven("llm-degraded", "fault-changed-nothing"), {}),
        (unproven("llm-degraded", "fault-no-request"), {}),
        (cell("max-latency", "search-tool-down", "unproven"), {"complete": False}),
    ],
    ids=["world fault", "silence", "nothing changed", "no request", "never ran"],
)
def test_an_unproven_cell_has_its_next_step(row: CellRow, changes: dict[str, Any], golden: Golden) -> None:
    golden(next_steps(msgspec.structs.replace(sample(), cells=[row], **changes)))


@pytest.mark.parametrize("code", ["no-call", "tool-ran", "claim-unseen"])
@pytest.mark.parametrize("answer", ["hi", None])
def test_a_reason_that_says_all_has_no_next_step(code: str, answer: str | None) -> None:
    rows = [cell("max-latency", "no-chaos", "unproven", trial("1", "unproven", answer, code=code), unproven=1)]
    assert not next_steps(msgspec.structs.replace(sample(), cells=rows))


@pytest.mark.parametrize(
    ("scenario", "code", "replicas"),
    [("no-chaos", "not-run", 1), ("llm-degraded", "not-run", 1), ("no-chaos", "no-answer", 3)],
)
def test_a_cell_with_trials_missing_names_the_command_that_goes_on(scenario: str, code: str, replicas: int) -> None:
    rows = [cell("max-latency", scenario, "unproven", trial("1", "pass", "hi"), passes=2, code=code)]
    run = msgspec.structs.replace(scored(replicas=replicas), cells=rows, complete=False)
    assert [step.split("holdfast ")[1] for step in next_steps(run)] == ["contract run --resume 0007"]
    assert not any("--resume" in step for step in next_steps(msgspec.structs.replace(run, complete=True)))


def test_params_are_shown_as_the_agent_gets_them() -> None:
    rows = [cell("max-latency", "no-chaos", "fail", trial("1", "fail", "hi"), params={"a": True, "b": None, "c": "x"})]
    assert "no-chaos [a=true b=null c=x]" in text(msgspec.structs.replace(sample(), cells=rows))


def test_only_five_blocks_and_the_rest_counted() -> None:
    run = large(10, 10)
    shown = text(run)
    assert len(re.findall("^[✘!?] ", shown, re.M)) == 5
    assert re.search(r"and \d+ more, see .holdfast/runs/0008/report.html", shown)


def test_verbose_shows_every_block() -> None:
    run = large(10, 10)
    troubled = sum(run.score.counts[o] for o in ("fail", "error", "unproven"))
    assert len(re.findall("^[✘!?] ", text(run, verbose=True), re.M)) == troubled


def test_quiet_counts_what_it_does_not_name() -> None:
    lines = text(large(20, 20), quiet=True).splitlines()
    assert len(lines) == 12


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"interval": Interval(25.0, 87.0, "kish", 5)},
        {"value": None, "interval": None, "calm": None, "chaos": None, "exit_code": 5},
        {"tolerated": ("a in b",)},
    ],
    ids=["plain", "interval", "no cell counted", "tolerated"],
)
def test_the_verdict_has_score_interval_calm_and_chaos(changes: dict[str, Any], golden: Golden) -> None:
    golden(text(scored(**changes)).rpartition("\n\n")[2].splitlines())


def test_one_replica_suggests_more() -> None:
    assert " · 1 replica: try --replicas 5" in text(scored(replicas=1))
    assert "--replicas" not in text(scored(replicas=5))


@pytest.mark.parametrize(
    ("code", "word"), [(0, "PASS"), (1, "FAIL"), (2, "INTERRUPTED"), (3, "ERROR"), (5, "UNPROVEN")]
)
def test_verdict_has_its_reasons_and_the_context_its_report(code: int, word: str) -> None:
    lines = text(scored(exit_code=code)).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(word))
    assert lines[at].startswith(f"{word}  2 critical cells failed") == (word != "INTERRUPTED")
    assert lines[at + 1].startswith("      .holdfast/runs/0007/report.html")


def test_at_most_three_lines_of_notes() -> None:
    notes = tuple(RunNote("selection", f"note {n}") for n in range(9))
    background = RunNote("sandbox", "background")
    run = msgspec.structs.replace(sample(), notes=(*notes, background), background=(background,))
    shown = text(run).splitlines()
    assert [line.split(":")[0].strip() for line in shown[-3:]] == ["note", "note", "9 more notes"]
    assert "note: background" in text(run, verbose=True)
    assert "background" not in "\n".join(shown)


@pytest.mark.parametrize(("exit_code", "unjudged"), [(0, True), (1, False)])
def test_attacks_that_succeed_are_in_the_context(exit_code: int, unjudged: bool, golden: Golden) -> None:
    lines = [line for line in text(scored(exit_code=exit_code)).splitlines() if "attacks" in line]
    assert ("no rule" in lines[0]) is unjudged
    golden(lines)


def test_interrupted_run_says_how_to_go_on() -> None:
    assert "--resume 0007" in text(msgspec.structs.replace(sample(), complete=False))


def test_hostile_answers_send_no_control_codes() -> None:
    shown = text(sample(), verbose=True)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", shown)
    assert r"\x1b[31mred" in shown


def test_colour_sends_only_our_own_codes() -> None:
    codes = set(re.findall("\x1b\\[([^m]*)m", text(sample(), color=True)))
    assert codes <= {"0", "1", "2", "32", "33", "1;31", "1;32", "1;33", "1;35"}
    assert "1;31" in codes


def test_colour_changes_nothing_but_colour() -> None:
    assert re.sub("\x1b\\[[0-9;]*m", "", text(sample(), color=True)) == text(sample())


def test_long_answer_is_cut_around_the_deciding_words() -> None:
    long = trial("1", "fail", "x " * 3000 + "SECRET" + " y" * 3000, marks=((6000, 6006),))
    rows = [cell("max-latency", "no-chaos", "fail", long, fails=1)]
    assert "SECRET" in text(msgspec.structs.replace(sample(), cells=rows), verbose=True)
    assert len(text(msgspec.structs.replace(sample(), cells=rows)).splitlines()) < 24
