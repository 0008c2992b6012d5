"""Scores and rules over time, as lines."""

from __future__ import annotations

import pytest

from golden_words import Golden
from holdfast.model.verdict import Outcome
from holdfast.report.safe import get_painter
from holdfast.report.terminal.past_runs import build_trends, format_table, format_trend
from holdfast.store.past_run import PastCell, PastRun

PLAIN = get_painter(False)
SPEC = "/p/holdfast.yaml"


def run(number: int, outcome: Outcome | None, **more: object) -> PastRun:
    known: dict[str, object] = {
        "part": "contract",
        "spec": SPEC,
        "started": f"2026-11-{number:02d}T10:20:30+00:00",
        "commit": f"{number}" * 40,
        "ended": True,
        "complete": True,
        "whole": True,
        "score": 100.0 if outcome == "pass" else 50.0,
        "exit_code": 0 if outcome == "pass" else 1,
        "trials": 4,
        "cells": () if outcome is None else (PastCell("cites", "down", outcome), PastCell("polite", "calm", "pass")),
    }
    return PastRun(f"{number:04d}", **{**known, **more})  # type: ignore[arg-type]


def test_a_rule_that_fails_now_names_the_run_and_commit_at_which_it_began(golden: Golden) -> None:
    (trend,) = build_trends([run(4, "fail"), run(3, "unproven"), run(2, "fail"), run(1, "pass")], SPEC)
    shown = list(format_trend(trend, PLAIN))
    golden(shown)
    assert not any("polite" in line for line in shown)


@pytest.mark.parametrize("last", [run(4, "pass"), run(4, "fail", commit="")], ids=["fixed", "fails again"])
def test_the_last_change_is_shown(last: PastRun, golden: Golden) -> None:
    (trend,) = build_trends([run(1, "pass"), run(2, "fail"), run(3, "pass"), last], SPEC)
    golden(list(format_trend(trend, PLAIN))[-1])


def test_a_rule_that_is_asked_for_is_shown_though_it_did_not_change() -> None:
    (trend,) = build_trends([run(1, "pass"), run(2, "fail")], SPEC)
    shown = list(format_trend(trend, PLAIN, "polite"))
    assert shown[-1] == "  polite in calm  ✔✔"
    assert not any("cites" in line for line in shown)


def test_runs_of_a_selection_and_unfinished_ones_are_counted_only(golden: Golden) -> None:
    (trend,) = build_trends([run(1, "pass"), run(2, "fail", whole=False), run(3, "fail", complete=False)], SPEC)
    golden(list(format_trend(trend, PLAIN)))


def test_other_files_and_parts_are_apart() -> None:
    made = build_trends([run(1, "pass"), run(2, "fail", spec="/p/other.yaml"), run(3, "pass", part="scenario")], SPEC)
    assert [(trend.part, len(trend.runs)) for trend in made] == [("contract", 1), ("scenario", 1)]


def test_only_the_newest_are_shown() -> None:
    (trend,) = build_trends([run(n, "pass") for n in range(1, 9)], SPEC, 3)
    assert [one.id for one in trend.runs] == ["0006", "0007", "0008"]


def test_the_table_says_what_a_run_was_of_and_why_one_cannot_be_read() -> None:
    runs = [
        run(3, "pass", whole=False),
        run(2, "pass", part="scenario", score=None, cases=3, cases_passed=2),
        PastRun("0001", note="not a record\x1b[31m"),
    ]
    shown = list(format_table(runs, 100, PLAIN))
    assert shown[1].split() == ["0003", "2026-11-03", "10:20", "contract,", "partial", *shown[1].split()[5:]]
    assert "2/3 cases" in shown[2]
    assert shown[3].split() == ["0001", "–", "–", "–", "–", "unreadable", "–", "–"]
    assert shown[4] == "  not a record\\x1b[31m"


def test_the_table_fits_the_screen_by_its_longest_column() -> None:
    shown = list(format_table([run(1, "pass", spec="/a/very/long/" + "x" * 200 + "/holdfast.yaml")], 90, PLAIN))
    assert all(len(line) <= 90 for line in shown)
    assert "…" in shown[1]
