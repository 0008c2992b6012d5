"""A cell whose trials failed in several ways: every report shows each way as a cause of its own."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from msgspec.structs import replace
from report_sample import INVARIANTS, cell, sample, trial, whole

from holdfast.model.run import Run
from holdfast.model.scenario import Scenario
from holdfast.model.score import CellCause
from holdfast.report.causes.cell_causes import group_cells
from holdfast.report.formats.json import Json
from holdfast.report.formats.junit import Junit
from holdfast.report.formats.markdown import Markdown
from holdfast.report.formats.sarif import build_document
from holdfast.report.page.causes import build_causes
from holdfast.report.safe import get_painter
from holdfast.report.terminal.failures import explain_cell
from holdfast.report.terminal.summary import format_details

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
