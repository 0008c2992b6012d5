from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from report_sample import sample

from golden_words import Golden
from holdfast.model.codes import STATEFUL, RunWarning
from holdfast.model.run import CellRow, TrialRow
from holdfast.model.score import Cell, Interval, Score
from holdfast.report import wording
from holdfast.report.safe import (
    count_columns,
    escape_commands,
    get_painter,
    make_visible,
    shorten,
    to_one_line,
)
from holdfast.report.short_names import join_names, shorten_names
from holdfast.report.terminal.matrix import Grid, draw
from holdfast.report.wording import format_answer, format_count, format_interval, format_warning


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (Interval(25.1, 87.4, "kish", 5), "95 %: 25–87, approximate"),
        (Interval(99.96, 100.0, "bootstrap", 20), "95 %: 99.96–100.00"),  # a narrow one never looks like none
        (Interval(25.1, 87.4, "bootstrap", 8), "95 %: 25–87, approximate: 8 prompts"),
    ],
)
def test_an_interval_has_as_many_digits_as_it_can_bear(made: Interval, shown: str) -> None:
    assert format_interval(made) == shown


def test_the_documented_warning_keeps_its_own_first_word() -> None:
    assert format_warning(RunWarning(STATEFUL, "No reset_endpoint.")) == "Warning: No reset_endpoint."
    assert format_warning(RunWarning("trial", "odd \x07")) == "warning: odd \\x07"


def test_one_of_a_kind_has_no_s() -> None:
    assert (format_count(1, "rule"), format_count(2, "rule"), format_count(0, "rule")) == (
        "1 rule",
        "2 rules",
        "0 rules",
    )


def test_an_empty_answer_is_not_an_ending_of_its_own(golden: Golden) -> None:
    golden(format_answer(TrialRow("1", "q", "", "answered", 1.0, "fail", "r")))
    assert format_answer(TrialRow("1", "q", None, "timeout", 1.0, "fail", "r")) == "(nothing)"


@pytest.mark.parametrize(("replicas", "shown"), [(1, 1), (10, 10), (11, 5), (2500, 12)])
def test_pass_hat_of_many_replicas_is_a_few_numbers(replicas: int, shown: int) -> None:
    score = Score(100.0, True, 0, pass_hat={str(k): 1.0 for k in range(1, replicas + 1)})
    found = list(wording.round_pass_hat(score))
    assert (len(found), found[0], found[-1]) == (shown, "1", str(replicas))


def test_the_trial_shown_is_of_a_prompt_that_decided() -> None:
    held = TrialRow("1", "held", "x", "answered", 1.0, "fail", "r", aside=True)
    bad = TrialRow("2", "bad", "x", "answered", 1.0, "fail", "r")
    cell = Cell("r", "calm", "low", 1.0, "fail")
    assert wording.find_telling(CellRow(cell, (held, bad))) is bad
    assert wording.find_telling(CellRow(cell, (held,))) is held
    assert wording.find_telling(CellRow(cell, ())) is None


@pytest.mark.parametrize(("passes", "advised"), [(0, False), (2, True)])
def test_more_replicas_are_advised_only_where_some_were_decided(passes: int, advised: bool) -> None:
    trial = TrialRow("1", "q", "It was refunded.", "answered", 1.0, "unproven", "not seen", code="claim-unseen")
    cell = Cell("r", "calm", "low", 1.0, "unproven", code="claim-unseen", passes=passes, unproven=3)
    run = replace(sample(), complete=True)
    assert ("replicas" in wording.format_next_step(run, CellRow(cell, (trial,)))) is advised


# Names that are cut stay tellable apart.


PREFIX = "checkout-with-three-items-"
NAMES = st.lists(
    st.builds("".join, st.lists(st.sampled_from((PREFIX, "ab", "-tool-error-503", "4", "é", "漢", "\x1b", "…1")))),
    unique=True,
    max_size=12,
)


@given(NAMES, st.integers(3, 60))
@example([f"{PREFIX}{n}{PREFIX * 2}" for n in range(120)], 12)
def test_distinct_names_stay_distinct_at_any_width_that_can_hold_them(names: list[str], room: int) -> None:
    if len(names) > 99 and room < 4:
        return
    shown = shorten_names(names, room)
    assert list(shown) == names
    assert len(set(shown.values())) == len(names)
    assert all(count_columns(text) <= room for text in shown.values())


@given(NAMES, st.integers(-1, 2))
def test_a_width_that_can_hold_nothing_breaks_nothing(names: list[str], room: int) -> None:
    assert all(count_columns(text) <= max(0, room) for text in shorten_names(names, room).values())


def test_what_differs_is_what_stays() -> None:
    ends = [f"{PREFIX}tool-error-{code}" for code in (503, 504)]
    assert list(shorten_names(ends, 18).values()) == ["chec…ool-error-503", "chec…ool-error-504"]
    inside = [f"{PREFIX}{word}-and-a-delivery-that-comes-too-late" for word in ("error", "slow")]
    assert list(shorten_names(inside, 18).values()) == ["chec…error-and-a-…", "chec…slow-and-a-d…"]
    assert shorten_names(["short", "a-long-name-that-is-like-no-other"], 18) == {
        "short": "short",
        "a-long-name-that-is-like-no-other": "a-long-name-that-…",
    }


def test_heads_and_rules_of_the_matrix_can_be_distinguished() -> None:
    heads = [f"{PREFIX}tool-error-{code}" for code in (503, 504)]
    rules = {f"never-fabricate-when-the-search-tool-{word}": "high" for word in ("is-down", "is-slow")}
    lines = draw(Grid(rules, heads, {}), 80, get_painter(False))
    assert "chec…ool-error-503   chec…ool-error-504" in lines[0]
    assert lines[1].split()[0] != lines[2].split()[0]
    assert lines[1].split()[0].endswith("is-down")


def test_a_list_of_names_fits_and_counts_the_rest() -> None:
    assert join_names(["a", "b", "c"], 40) == "a, b, c"
    assert join_names([f"search-{n}" for n in range(12)], 40) == "search-0, search-1, … and 10 more"
    assert join_names(["x" * 90, "y" * 90], 30) == f"{'x' * 14}…, … and 1 more"
    assert join_names([], 30) == ""


ANY = st.text(st.characters(exclude_categories=()))


def test_escape_codes_are_shown_not_sent() -> None:
    assert make_visible("\x1b[31mred\x9b2J") == r"\x1b[31mred\x9b2J"


def test_bidi_controls_are_shown() -> None:
    assert make_visible("\u202egnp.exe\u2066") == r"\u202egnp.exe\u2066"


@given(ANY)
def test_no_control_or_surrogate_survives(text: str) -> None:
    assert not {unicodedata.category(c) for c in to_one_line(text)} & {"Cc", "Cs", "Zl", "Zp"}


@given(ANY)
def test_one_line_is_one_line_that_can_be_encoded(text: str) -> None:
    assert len(to_one_line(text).encode().decode().splitlines()) <= 1


@given(ANY, st.integers(1, 40))
def test_shortened_text_fits_its_room(text: str, room: int) -> None:
    assert count_columns(shorten(text, room)) <= room


def test_wide_characters_take_two_columns() -> None:
    assert count_columns("金a") == 3
    assert shorten("金金金", 4) == "金…"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", "\\::error::x"),
        ("a\n  ::stop-commands::t\nb", "a\n  \\::stop-commands::t\nb"),
        ("answered ##[add-mask]x", "answered ##\\[add-mask]x"),
        ("std::vector ## [x] a :: b\n\n", "std::vector ## [x] a :: b\n\n"),
    ],
)
def test_a_workflow_command_in_an_answer_is_not_obeyed(text: str, shown: str) -> None:
    assert escape_commands(text) == shown
