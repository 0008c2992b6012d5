"""Failures by their cause: nothing lost, nothing told twice, whatever the order."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from report_sample import INVARIANTS, cell, sample, trial, whole

from golden_words import Golden
from holdfast.model.run import CellRow, Run
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.score import CellCause
from holdfast.report import wording
from holdfast.report.causes.cause_words import format_subject
from holdfast.report.causes.cell_causes import MOST_REASONS, Cause, FaultName, group_cells
from holdfast.report.formats.json import Json
from holdfast.report.formats.junit import Junit
from holdfast.report.formats.markdown import Markdown
from holdfast.report.formats.sarif import build_document
from holdfast.report.page.causes import build_causes
from holdfast.report.safe import get_painter
from holdfast.report.terminal.failures import explain_cell
from holdfast.report.terminal.summary import format_details

RULES = [rule.id for rule in INVARIANTS]
SCENARIOS = (
    Scenario("no-chaos"),
    *(Scenario(f"search-{mode}", (Injection("tool", "search", mode),)) for mode in ("error", "timeout", "empty")),
    *(Scenario(f"llm-{n}", (Injection("llm", "*", "rate_limit"),)) for n in range(3)),
)
REASONS = ("nothing matches a", "nothing matches b", "took 12 ms", "took 99 ms", "found 'x' here", "found 'y' here")


def row(rule: str, scenario: str, outcome: str, reason: str, **more: object) -> CellRow:
    told = trial(f"{rule}-{scenario}", outcome, reason=reason)
    return cell(rule, scenario, outcome, told, reason=reason, fails=1, met=scenario != "no-chaos", **more)


def run_of(rows: list[CellRow]) -> Run:
    return replace(sample(), scenarios=SCENARIOS, cells=rows)


@st.composite
def matrices(draw: st.DrawFn) -> list[CellRow]:
    outcomes = st.sampled_from(("pass", "n/a", "fail", "fail", "error", "unproven"))
    endings = st.sampled_from(("", "", "", "raised: boom", "timeout: no answer within 12 ms"))
    return [
        row(rule, scenario.name, draw(outcomes), draw(st.sampled_from(REASONS)), ending=draw(endings))
        for rule in RULES
        for scenario in SCENARIOS
    ]


def key(cause: Cause) -> tuple[object, ...]:
    told = wording.find_telling(cause.first)
    heads = tuple(member.head for member in cause.members)
    return cause.rules, cause.outcome, cause.reason, heads, tuple(cause.reasons), cause.trials, told and told.id


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(matrices(), st.integers())
def test_every_troubled_cell_is_in_one_cause_in_any_order(rows: list[CellRow], seed: int) -> None:
    found = group_cells(run_of(rows))
    troubled = [row.cell for row in rows if row.cell.outcome in wording.TROUBLE]
    members = [pair for one in found for pair in zip(one.member_rules, (m.head for m in one.members), strict=True)]
    assert Counter(members) == Counter((cell.invariant, cell.scenario) for cell in troubled)
    by_ending = [one for one in found if one.first.cell.ending]
    assert len(by_ending) == len({cell.ending for cell in troubled if cell.ending})
    assert all(len(one.rules) == 1 for one in found if not one.first.cell.ending)
    mixed = Random(seed).sample(rows, len(rows))
    assert [key(one) for one in group_cells(run_of(mixed))] == [key(one) for one in found]
    worst = [wording.build_sort_key(cause.first) for cause in found]
    assert worst == sorted(worst)


def test_one_reason_under_many_faults_is_one_cause_that_tells_them(golden: Golden) -> None:
    code = {"code": "pattern-found", "key": ()}
    rows = [row(RULES[0], s.name, "fail", f"found '{s.name}' which must not appear", **code) for s in SCENARIOS]
    [cause] = group_cells(run_of([*rows, row(RULES[1], "no-chaos", "pass", "")]))
    assert (cause.cells, cause.trials, cause.description) == (7, 7, "Names a source")
    assert (cause.severity, cause.place, cause.first.cell.scenario) == ("critical", "finance.yaml:12", "no-chaos")
    assert dict(cause.faults) == {
        (): 1,
        (FaultName("tool", "search", "error"),): 1,
        (FaultName("tool", "search", "timeout"),): 1,
        (FaultName("tool", "search", "empty"),): 1,
        (FaultName("llm", "*", "rate_limit"),): 3,
    }
    golden([cause.faults[n][0][0].text for n in (1, -1)])


def test_rules_outcomes_and_kinds_of_reasons_are_distinguished_the_widest_first() -> None:
    rows = [
        row(RULES[2], "no-chaos", "fail", "took 12 ms"),
        *(row(RULES[0], s.name, "fail", "nothing matches a") for s in SCENARIOS[2:4]),
        *(row(RULES[0], s.name, "fail", "nothing matches b", flaky=True) for s in SCENARIOS[4:]),
        row(RULES[0], "no-chaos", "unproven", "nothing matches a"),
    ]
    told = [(c.rules[0], c.outcome, c.cells, dict(c.marks)) for c in group_cells(run_of(rows))]
    assert told == [
        (RULES[0], "fail", 3, {"flaky": 3}),
        (RULES[0], "fail", 2, {}),
        (RULES[2], "fail", 1, {}),
        (RULES[0], "unproven", 1, {}),
    ]


def test_a_rule_that_fails_for_too_many_reasons_has_one_cause_that_says_so() -> None:
    word = "abcdefghij"
    scenarios = tuple(Scenario(f"s{n:03}") for n in range(MOST_REASONS + 5))
    rows = [
        row(RULES[0], s.name, "fail", f"lacks {word[n // 10 % 10]}{word[n % 10]}{word[n // 100]}")
        for n, s in enumerate(scenarios)
    ]
    run = replace(sample(), scenarios=scenarios, cells=rows)
    [cause] = group_cells(run)
    assert cause.mixed
    assert cause.cells == len(set(cause.reasons)) == MOST_REASONS + 5
    assert key(cause) == key(group_cells(replace(run, cells=rows[::-1]))[0])
    assert len(group_cells(replace(run, cells=rows[:MOST_REASONS]))) == MOST_REASONS


def test_one_crash_is_one_cause_with_the_rules_that_it_broke_under_it() -> None:
    crash = {"ending": "raised: RuntimeError: boom (agent.py:6)"}
    rows = [
        row(RULES[2], "no-chaos", "unproven", "nothing to judge, no answer", unproven=1, **crash),
        row(RULES[1], "no-chaos", "fail", "the agent raised an exception", **crash),
        row(RULES[0], "search-error", "fail", "no answer: it raised", **crash),
        row(RULES[0], "no-chaos", "fail", "no answer: it raised", **crash),
        row(RULES[1], "search-error", "fail", "nothing matches a"),
    ]
    crashed, other = group_cells(run_of(rows))
    assert (crashed.rules, crashed.outcome, crashed.severity) == (tuple(RULES[:3]), "fail", "critical")
    assert crashed.heads == ["no-chaos", "search-error"]
    assert format_subject(crashed) == f"{RULES[0]}, {RULES[1]}, ? {RULES[2]}", (
        "a rule that did not fail has its own sign"
    )
    assert [*zip(crashed.member_rules, (member.head for member in crashed.members), strict=True)] == [
        (RULES[0], "no-chaos"), (RULES[1], "no-chaos"), (RULES[2], "no-chaos"), (RULES[0], "search-error"),
    ]  # fmt: skip
    assert crashed.trials == 2, "rules that share a trial count it once"
    own = replace(run_of(rows), cell_rules=frozenset(RULES))
    assert group_cells(own)[0].trials == 4
    assert (other.rules, other.cells) == ((RULES[1],), 1)


# A cell whose trials failed in several ways: every report shows each way as a cause of its own.


RULE = INVARIANTS[0].id
WAYS = ("refund", "invoice", "boom")
ENDED = "raised: RuntimeError: boom"
TRIALS = 18


def run_of_18_probes() -> Run:
    """Six trials each lack a refund, lack an invoice, and crash."""
    trials = []
    for n in range(TRIALS):
        way = WAYS[n % 3]
        ended = ENDED if way == "boom" else ""
        code, key = ("no-answer", ()) if ended else ("missing", (way,))
        trials.append(trial(f"t{n:02}", "fail", reason=f"lacks {way}", code=code, key=key, ended_by=ended))
    ways = (
        CellCause("lacks refund", "missing", ("refund",), trials=6),
        CellCause("lacks invoice", "missing", ("invoice",), trials=6),
        CellCause("lacks boom", "no-answer", (), ENDED, trials=6),
    )
    first = ways[0]
    row = cell(
        RULE, "no-chaos", "fail", *trials,
        reason=first.reason, code=first.code, key=first.key, fails=TRIALS, causes=ways,
    )  # fmt: skip
    return replace(sample(), scenarios=(Scenario("no-chaos"),), cells=[row], cases=[])


def test_18_probes_that_fail_in_3_ways_are_3_causes_each_with_a_trial_of_its_own() -> None:
    run = run_of_18_probes()
    found = group_cells(run)
    assert [(one.cells, one.trials) for one in found] == [(1, 6)] * 3
    listed = build_causes(run)
    assert (listed["total"], listed["cells"]) == (3, 1)
    assert {one["reason"]: one["trial"] for one in listed["causes"]} == {
        "lacks refund": "t00", "lacks invoice": "t01", "lacks boom": "t02",
    }  # fmt: skip


def test_every_report_has_each_cause() -> None:
    run = run_of_18_probes()
    told = json.loads(whole(Json(), run))
    assert sorted((*one["key"], one["code"], one["trials"]) for one in told["causes"]) == [
        ("invoice", "missing", 6), ("no-answer", 6), ("refund", "missing", 6),
    ]  # fmt: skip
    results = build_document(run)["runs"][0]["results"]
    assert len({one["partialFingerprints"]["holdfastCell/v1"] for one in results}) == len(results) == 3
    suites = ElementTree.fromstring(whole(Junit(), run))
    (failure,) = suites.iter("failure")
    texts = {
        "junit": failure.text or "",
        "terminal": "\n".join(format_details(run, 100, get_painter(False))),
        "verbose": "\n".join(format_details(run, 100, get_painter(False), verbose=True)),
        "one cell": "\n".join(explain_cell(run, run.cells[0])),
        "markdown": whole(Markdown(), run).decode(),
    }
    for name, text in texts.items():
        assert [way for way in WAYS if f"lacks {way}" not in text] == [], name
