from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_sample import cell, large, sample

from example_counts import examples
from golden_words import Golden
from holdfast.model.score import Interval, MutationScore, Score, Share, TypeShare
from holdfast.report.mutations import format_headline, format_judged, format_robustness, format_share, format_table
from holdfast.report.safe import count_columns, get_painter
from holdfast.report.terminal.matrix import MAX_ROWS, Face, Grid, build_face, build_grid, draw

BARE = get_painter(False)


def made(rules: int, heads: int, outcome: str = "pass") -> Grid:
    names = [f"scenario-{n}" for n in range(heads)]
    ids = {f"rule-{n}": "medium" for n in range(rules)}
    return Grid(ids, names, {r: {h: Face(outcome, "✔" if outcome == "pass" else "✘") for h in names} for r in ids})


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(1, 60), st.integers(1, 60), st.integers(60, 200), st.sampled_from(["pass", "fail"]))
def test_no_line_is_wider_than_the_screen(rules: int, heads: int, width: int, outcome: str) -> None:
    assert all(count_columns(line) <= width for line in draw(made(rules, heads, outcome), width, BARE))


def test_many_scenarios_wrap_into_blocks_that_repeat_the_rules() -> None:
    lines = draw(made(1, 6), 70, BARE)
    assert sum("rule-0" in line for line in lines) > 1
    assert all(any(f"scenario-{n}" in line for line in lines) for n in range(6))


def test_long_names_are_shortened_with_an_ellipsis() -> None:
    lines = draw(Grid({"never-fabricate-when-tools-fail-" * 3: "critical"}, ["s" * 80], {}), 80, BARE)
    assert "…" in lines[0]
    assert "…" in lines[1]


def test_beyond_forty_rows_only_troubled_rows_are_shown_and_the_rest_counted() -> None:
    big = made(MAX_ROWS + 5, 2)
    big.add("rule-7", "scenario-1", Face("fail", "✘"))
    lines = draw(big, 100, BARE)
    assert any("rule-7" in line for line in lines)
    assert not any("rule-8 " in line for line in lines)
    assert f"  {MAX_ROWS + 4} rules " in "\n".join(lines)


def test_forty_rows_that_all_pass_are_all_shown() -> None:
    assert sum("✔" in line for line in draw(made(MAX_ROWS, 2), 100, BARE)) == MAX_ROWS


def test_a_hundred_rules_by_fifty_scenarios_stay_readable() -> None:
    lines = draw(build_grid(large(100, 50)), 120, BARE)
    assert len(lines) < 120
    assert any("60 more rules" in line for line in lines)
    assert all(count_columns(line) <= 120 for line in lines)


def test_replicas_are_counted_next_to_the_sign() -> None:
    failed = cell("max-latency", "no-chaos", "fail", passes=1, fails=1).cell
    assert build_face(failed).text == "✘ 1/2"
    assert build_face(cell("max-latency", "no-chaos", "fail", fails=1).cell).text == "✘"


def test_marks_are_flagged_and_explained(golden: Golden) -> None:
    lines = draw(build_grid(sample()), 100, BARE)
    assert "✘ 1/2 ≈" in lines[1]
    assert "✘ 0/2 cs" in lines[1]
    golden(lines[-1])


def test_params_make_columns_of_their_own() -> None:
    run = sample()
    rows = [cell("max-latency", "no-chaos", "pass", params={"region": r}) for r in ("eu", "us")]
    assert build_grid(type(run)("1", "p", "n", "s", 0, run.score, (), (), rows)).heads == [
        "no-chaos [region=eu]",
        "no-chaos [region=us]",
    ]


# Mutations in words.


TYPES = (TypeShare("noise", False, 0.8, 3, 4, 1), TypeShare("prompt_injection", True, 1.5, 2, 2))
MADE = MutationScore(0.8333, Share(3, 4, 0.75, Interval(0.3, 0.954)), Share(2, 2), TYPES)


def test_the_headline_has_the_three_numbers_and_leaves_out_what_was_not_judged(golden: Golden) -> None:
    score = Score(83.33, True, 0, Interval(51.2, 95.9, "bootstrap", 30), mutation=MADE)
    golden(format_headline(score))
    undecided = MutationScore(None, Share(0, 0), Share(0, 0))
    assert format_headline(Score(None, False, 5, mutation=undecided)) == "robustness –"
    assert format_headline(Score(None, False, 5)) == ""
    assert (format_robustness(undecided), format_share(Share(1, 2))) == ("–", "1 of 2")


def test_probes_are_distinguished_from_mutations(golden: Golden) -> None:
    golden(
        [format_judged(Score(83.33, True, 0, mutation=MADE, judged=n, total=total)) for n, total in ((6, 7), (7, 9))]
    )


def test_the_table_is_aligned(golden: Golden) -> None:
    golden(list(format_table(MADE)))


@pytest.mark.parametrize(("low", "high"), [(0.0, 100.0), (12.3, 15.1), (83.2, 83.4), (99.0, 100.0), (0.0, 0.4)])
def test_the_interval_of_a_robustness_is_in_its_scale(low: float, high: float) -> None:
    score = Score((low + high) / 2, True, 0, Interval(low, high, "bootstrap", 30), mutation=MADE)
    found = re.search(r"robustness \S+ +\(95 %: ([0-9.]+)–([0-9.]+)\)", format_headline(score))
    assert found is not None
    assert [float(end) for end in found.groups()] == [round(low / 100, 2), round(high / 100, 2)]
