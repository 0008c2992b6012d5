"""The overall score in words, and for programs."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace
from report_sample import sample

from golden_words import Golden
from holdfast.model.codec import encode
from holdfast.model.codes import STATEFUL, RunWarning
from holdfast.model.run import Overall, PartResult
from holdfast.model.score import Interval, MutationScore, Share
from holdfast.report.overall import (
    build_document,
    format_headline,
    format_markdown,
    format_summary,
    format_word,
    get_sign,
)
from holdfast.report.page.causes import build_failed_part
from holdfast.report.page.run import build_overall
from holdfast.report.wording import format_verdict

MADE = MutationScore(0.5, Share(1, 2), Share(0, 0))
PARTS = (
    PartResult("contract", 80.0, weight=0.35, share=0.64, passed=True, said="4 of 5 cells passed", trials=5),
    PartResult(
        "mutation", 50.0, weight=0.2, share=0.36, exit_code=1, reasons=("1 of 2 mutations failed",),
        reason_codes=("cases-failed",), mutation=MADE,
        interval=Interval(9.0, 91.0), said="1 of 2 mutations passed",
    ),
    PartResult("replay", weight=0.1, skipped="the file has no replays"),
)  # fmt: skip


def overall(**changes: Any) -> Overall:
    known: dict[str, Any] = {"run": "0007", "score": 69.09, "passed": False, "exit_code": 1, "parts": PARTS}
    return Overall(**{**known, "reasons": ("mutation: 1 of 2 mutations failed",), "name": "Desk", **changes})


def test_a_line_a_part_the_number_and_the_verdict(golden: Golden) -> None:
    golden(format_summary(overall(min_score=60.0), color=False).splitlines())


def test_quiet_leaves_the_table_out() -> None:
    assert len(format_summary(overall(), color=False, quiet=True).splitlines()) == 2


def test_an_interrupted_run_says_how_to_go_on() -> None:
    assert "holdfast ci --resume 0007" in format_summary(overall(exit_code=2), color=False)


def test_signs_and_words_follow_the_exit_code() -> None:
    assert [format_verdict(replace(overall(), exit_code=code)) for code in (0, 1, 2, 3, 5, 9)] == [
        "PASS", "FAIL", "INTERRUPTED", "ERROR", "UNPROVEN", "ERROR",
    ]  # fmt: skip
    assert [get_sign(PartResult("chaos", exit_code=code), overall()) for code in (0, 1, 5, 3)] == ["✔", "✘", "?", "!"]


def test_a_share_of_a_run_passes_nothing() -> None:
    share = replace(overall(), exit_code=0, shard="2/4")
    assert (format_verdict(share), format_verdict(replace(share, exit_code=1))) == ("SHARD", "FAIL")
    assert (get_sign(PartResult("chaos"), share), format_word(PartResult("chaos"), share)) == ("–", "SHARD")
    assert build_document(share)["shard"] == "2/4"
    assert not any(part["passed"] for part in build_document(share)["parts"].values())


def test_programs_are_told_the_same() -> None:
    found = json.loads(encode(build_document(overall())))
    assert (found["score"], found["exit_code"], found["run_id"]) == (69.09, 1, "0007")
    assert found["parts"]["mutation"]["robustness"] == 0.5
    assert found["parts"]["mutation"]["interval"] == {"low": 9.0, "high": 91.0}
    assert (found["parts"]["replay"]["passed"], found["parts"]["replay"]["exit_code"]) == (None, None)
    assert found["parts"]["replay"]["skipped"] == PARTS[2].skipped


def test_markdown_holds_no_markup_of_others() -> None:
    text = format_markdown(overall(name="<b>Desk</b>", reasons=("a | b",), notes=("[x](y)",)))
    assert text.startswith("## ✘ FAIL: ")
    assert "<b>" not in text
    assert "](y)" not in text
    assert format_headline(overall()).split()[1] in text


def test_warnings_of_the_parts_take_three_lines_and_the_state_comes_first() -> None:
    many = (*(RunWarning("tool-never-called", f"tool {n}") for n in range(3)), RunWarning(STATEFUL, "It has state."))
    found = overall(warnings=(*many, RunWarning("option-idle", "known", ignored=True)))
    for text in (format_summary(found, color=False), format_markdown(found)):
        lines = [line.removeprefix("- ").lower() for line in text.splitlines() if "warning: " in line.lower()]
        assert [line.partition(": ")[2] for line in lines[:2]] == ["it has state.", "tool 0"]
        assert len(lines) == 3
    assert format_summary(found, color=False, verbose=True).lower().count("warning: ") == 5
    assert "tool" not in format_summary(found, color=False, quiet=True)
    assert len(json.loads(encode(build_document(found)))["warnings"]) == 5
    assert len(build_overall(found)["warnings"]) == 4


def test_a_failed_part_has_its_causes_and_its_matrix() -> None:
    run = sample()
    part = build_failed_part(PartResult("contract", exit_code=1, run="0007/contract", page="contract.html"), run)
    first = part["causes"][0]
    rule, column = first["cells"][0]
    assert part["rules"][rule]["id"] == first["rule"] == "always-cite-source"
    assert part["columns"][column]["name"] == "search-tool-down"
    rows = {
        row["rule"]: dict(zip(part["matrix"]["heads"], row["cells"], strict=True)) for row in part["matrix"]["rows"]
    }
    assert rows["always-cite-source"]["search-tool-down"][0] == "fail"
    assert (part["page"], part["matrix"]["left_out"]) == ("contract.html", 0)
