"""Names that are cut stay tellable apart."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.report.safe import count_columns, get_painter
from holdfast.report.short_names import join_names, shorten_names
from holdfast.report.terminal.matrix import Grid, draw

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
