"""Problems as a person sees them."""

from holdfast.model.spec import Problem
from holdfast.spec.explain import count_problems, explain

SOURCE = "contract:\n  invariants:\n    - id: a\n      severty: critical\n      pattern: '\\\\d'\n"
PROBLEMS = [
    Problem(
        "can never match what it seems to mean",
        "contract.invariants[0].pattern",
        5,
        16,
        1,
        "single quotes keep both backslashes",
        "warning",
        "lint-escaped-regex",
    ),
    Problem("unknown key", "contract.invariants[0].severty", 4, 7, 7, "did you mean severity?", code="unknown-key"),
]


def test_layout_is_sorted_by_place_with_gutter_carets_and_hint():
    assert explain("finance.yaml", SOURCE, PROBLEMS) == (
        "finance.yaml:4:7  contract.invariants[0].severty  unknown key  [unknown-key]\n"
        "    4 │       severty: critical\n"
        "      │       ^^^^^^^ did you mean severity?\n"
        "finance.yaml:5:16  contract.invariants[0].pattern  can never match what it seems to mean  (warning)"
        "  [lint-escaped-regex]\n"
        "    5 │       pattern: '\\\\d'\n"
        "      │                ^ single quotes keep both backslashes\n"
    )


def test_tally():
    assert count_problems(PROBLEMS) == "1 error, 1 warning."
    assert count_problems(PROBLEMS[:1] * 2) == "2 warnings."
    assert count_problems([]) == ""


def test_problem_without_a_line_shows_no_source():
    text = explain("gone.yaml", "", [Problem("there is no such file", hint="write one")])
    assert text == "gone.yaml  there is no such file\n      write one\n"


def test_control_codes_are_shown_not_sent():
    text = explain("f", "a: \x1b[31m\u202ered\x07", [Problem("bad \x1b[0m", "a", 1, 4, 3)])
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "␛[31m\\u202ered␇" in text


def test_carets_stand_under_wide_and_hidden_characters():
    text = explain("f", "漢字\u202e: xyz", [Problem("m", "p", 1, 6, 3)])
    line, carets = text.splitlines()[1:3]
    assert carets.count("^") == 3
    before = line.split("xyz")[0]
    assert carets.index("^") == len(before) + 2  # two wide characters take two more columns


def test_long_line_is_cut_around_the_place():
    text = explain("f", "a" * 5000 + "HERE" + "b" * 5000, [Problem("m", "p", 1, 5001, 4)])
    line, carets = text.splitlines()[1:3]
    assert "HERE" in line
    assert len(line) < 200
    assert line[carets.index("^") : carets.index("^") + 4] == "HERE"


def test_colour_only_when_asked():
    assert "\x1b[31m" in explain("f", SOURCE, PROBLEMS, color=True)
    assert "\x1b" not in explain("f", SOURCE, PROBLEMS)
