"""Causes on a terminal and in Markdown: one block for many cells, and nothing lost."""

from __future__ import annotations

import json
import re

import pytest
from msgspec.structs import replace
from report_cases_sample import alone
from report_sample import INVARIANTS, cell, sample, trial, whole

from golden_words import Golden
from holdfast.model.run import CellRow, Run
from holdfast.model.scenario import Injection, Scenario
from holdfast.report import cases
from holdfast.report.causes.case_causes import group_cases
from holdfast.report.formats.json import Json
from holdfast.report.formats.markdown import Markdown
from holdfast.report.page import causes as causes_page
from holdfast.report.page.html import Html
from holdfast.report.terminal.summary import format_summary
from page_documents import documents

MODES = ("error", "timeout", "empty", "stale", "rate_limit", "garbage")
SCENARIOS = (
    Scenario("no-chaos"),
    *(Scenario(f"search-{mode}", (Injection("tool", "search", mode),)) for mode in MODES),
)


def failed(rule: str, scenario: str, n: int, **more: object) -> CellRow:
    one = trial(f"{rule[:3]}-{n}", "fail", f"It costs ${n}", reason=f"found '${n}' which must not appear")
    return cell(rule, scenario, "fail", one, reason=one.reason, fails=1, met=scenario != "no-chaos", **more)


def run_of(*rows: CellRow) -> Run:
    return replace(sample(), scenarios=SCENARIOS, cells=rows)


def text(run: Run, **settings: object) -> str:
    return format_summary(run, **{"width": 100, "color": False, **settings})  # type: ignore[arg-type]


CITE = INVARIANTS[0].id
MANY = run_of(*(failed(CITE, one.name, n, fails_in_calm=n > 0) for n, one in enumerate(SCENARIOS)))


def test_many_cells_of_one_cause_are_one_block_that_names_them(golden: Golden) -> None:
    shown = text(MANY)
    block = shown[shown.index("✘ always-cite") :].split("\n\n")[0].splitlines()
    golden(block)
    assert shown.count("found '$") == 1
    few = text(run_of(*(failed(CITE, one.name, n) for n, one in enumerate(SCENARIOS[:3]))))
    assert "✘ always-cite-source · 3 scenarios: no-chaos, search-error, search-timeout      " in few


def test_a_wording_that_differs_in_more_than_numbers_is_shown() -> None:
    """What stands for others must not hide them: a key that was leaked, behind a swear word."""
    rows = [failed(CITE, one.name, n) for n, one in enumerate(SCENARIOS)]
    leak = "found 'AKIA123456' which must not appear"
    rows[5] = replace(rows[5], cell=replace(rows[5].cell, reason=leak))
    shown = " ".join(text(run_of(*rows)).split())
    assert f"(6 other wordings, as: {leak})" in shown


def test_verbose_shows_every_cell_of_a_cause() -> None:
    shown = text(MANY, verbose=True)
    assert all(f"✘ always-cite-source · {one.name}" in shown for one in SCENARIOS)
    assert all(f"found '${n}' which" in shown for n in range(7))
    assert shown.count("Names a source") == 1


def test_what_is_left_out_is_counted_in_causes_and_cells() -> None:
    reasons = ("nothing matches " + word for word in "abcdefg")
    rows = []
    for reason in reasons:
        for one in SCENARIOS[:2]:
            told = trial("x", "fail", reason=reason)
            rows.append(cell(CITE, one.name, "fail", told, reason=reason, params={"p": reason[-1]}, fails=1))
    shown = text(run_of(*rows))
    assert shown.count("✘ always-cite-source · 2 ") == 5
    assert "2 more causes (4 cells)" in shown


def test_parameters_make_cells_of_a_scenario() -> None:
    rows = [failed(CITE, "no-chaos", n, params={"lang": lang}) for n, lang in enumerate(("de", "en"))]
    assert "✘ always-cite-source · 2 cells: no-chaos [lang=de], no-chaos [lang=en]" in text(run_of(*rows))


def test_markdown_has_an_entry_a_cause_with_every_scenario() -> None:
    page = whole(Markdown(), MANY).decode()
    assert page.count("<details>") == 1
    assert re.search(r"<summary>✘ fail: always-cite-source · 7 scenarios .*</summary>", page)
    assert all(f" {one.name}\n" in page for one in SCENARIOS)
    assert re.search(r"^rule +Names a source$", page, re.M)


def test_json_names_the_cells_of_each_cause() -> None:
    [cause] = json.loads(whole(Json(), MANY))["causes"]
    assert (cause["part"], cause["rules"], cause["outcome"], cause["trials"]) == ("contract", [CITE], "fail", 7)
    assert cause["cells"][1] == {"invariant": CITE, "scenario": "search-error", "params": {}}
    assert [one["scenario"] for one in cause["cells"]] == [one.name for one in SCENARIOS]
    assert cause["first"] == {"trial": "alw-0", "again": "holdfast contract run --trial alw-0 --seed 7"}
    assert cause["faults"][1] == {"faults": [{"plane": "tool", "target": "search", "mode": "error"}], "cells": 1}


def test_the_page_has_the_cells_of_a_cause_in_one_entry() -> None:
    page = whole(Html(), MANY).decode()
    assert "✘ always-cite-source · 7 scenarios" in page, "also without scripts"
    (cause,) = documents(page)["run/causes"]["causes"]
    assert cause["cells"] == [[0, column] for column in range(7)]


def test_the_page_lists_so_many_cells_and_counts_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes_page, "CELLS", 50)
    rules = [replace(sample().invariants[0], id=f"rule-{n}") for n in range(20)]
    scenarios = tuple(Scenario(f"s{n}") for n in range(60))
    rows = [failed(CITE, "s0", n) for n, _ in enumerate(rules)]
    rows = [CellRow(replace(row.cell, invariant=rule.id), row.trials) for row, rule in zip(rows, rules, strict=True)]
    wide = [failed(CITE, one.name, n) for n, one in enumerate(scenarios)]
    run = replace(sample(), invariants=(*sample().invariants, *rules), scenarios=scenarios, cells=[*wide, *rows])
    found = documents(whole(Html(), run).decode())["run/causes"]
    assert found["total"] == 21
    assert [len(cause["cells"]) for cause in found["causes"]] == [50, *[1] * 20]


def test_cases_of_one_cause_are_one_block(golden: Golden) -> None:
    run = alone()
    failing, broken = run.cases[1], run.cases[2]
    others = [replace(failing, case=replace(failing.case, params={"lang": lang})) for lang in ("en", "fr", "it")]
    run = replace(run, cases=(*run.cases, *others))
    assert [(one.outcome, len(one.members)) for one in group_cases(run)] == [("fail", 4), ("error", 1)]
    assert [(one.outcome, len(one.members)) for one in group_cases(run, passed=True)] == [("pass", 1)]
    shown = text(run)
    assert "✘ 4 cases failed  (4 × flaky)\n  cases      search-tool-down [lang=de], search-tool-down [lang=en]" in shown
    assert shown.count("forbidden  http_except") == 1
    golden([line for line in shown.splitlines() if line.startswith("! ")])
    assert broken.case.scenario == "llm-degraded"
    every = text(run, verbose=True)
    assert all(f"✘ case search-tool-down [lang={lang}] failed" in every for lang in ("de", "en", "fr", "it"))
    page = whole(Markdown(), run).decode()
    assert "✘ fail: 4 cases" in page
    assert page.count("forbidden  http_except") == 1


def test_cases_that_differ_in_more_than_numbers_say_so_in_every_report() -> None:
    run = alone()
    failing = run.cases[1]
    told = cases.find_telling(failing)
    assert told is not None
    worse = tuple(replace(one, reason="wrong: 'orders deleted'") for one in told.verdicts)
    plain = tuple(replace(one, reason="wrong: 'a typo'") for one in told.verdicts)
    rows = [
        replace(failing, case=replace(failing.case, params={"n": n}), replicas=[replace(told, verdicts=verdicts)] * 9)
        for n, verdicts in enumerate((plain, plain, worse))
    ]
    run = replace(run, cases=rows)
    (cause,) = group_cases(run)
    assert len(set(cause.reasons)) == 2
    for shown in (text(run), whole(Markdown(), run).decode(), whole(Html(), run).decode()):
        assert "1 other wording, as: " in shown
        assert "orders deleted" in shown[shown.index("1 other wording") :][:300]


def test_a_case_that_is_unproven_is_not_an_error_of_ours_in_markdown_either() -> None:
    run = alone()
    row = run.cases[2]
    run = replace(run, cases=[replace(row, case=replace(row.case, unproven_only=True))])
    shown = whole(Markdown(), run).decode()
    assert "| ? unproven |" in shown
    assert "? unproven: case" in shown
