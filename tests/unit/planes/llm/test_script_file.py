"""A script's file: every problem at its line and column."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from example_counts import examples
from golden_words import Golden
from holdfast.errors import SpecError
from holdfast.planes.llm.sources.script_file import load_script


def problems(folder: Path, text: str | bytes) -> list[tuple[int, int, str, str]]:
    """Line, column, message and hint of each problem in a file."""
    file = folder / "model.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SpecError) as raised:
        load_script(file)
    return [(p.line, p.column, p.message, p.hint) for p in raised.value.problems]


def only(folder: Path, text: str | bytes) -> tuple[int, int, str, str]:
    found = problems(folder, text)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "hint"),
    [
        ("replies:\n  - txt: hi\n    text: x\n", 2, 5, "unknown key", "did you mean text?"),
        ("replies:\n  - {match: {promt: x}, text: y}\n", 2, 14, "unknown key", "did you mean prompt?"),
        (
            "replies:\n  - text: a\n    text: b\n",
            3,
            5,
            "written twice: first on line 2",
            "write it once, with all its entries",
        ),
        (
            "replies:\n  - {text: a, finish: stopped}\n",
            2,
            23,
            "expected one of stop, length, tool_calls, content_filter, found the text 'stopped'",
            "did you mean stop?",
        ),
        ("replies:\n  - {text: [a]}\n", 2, 12, "expected a text, found a list", ""),
        ("replies:\n  - {text: a, times: 0}\n", 2, 22, "expected at least 1, found the number 0", ""),
        ("replies:\n  - {text: a, delay_ms: soon}\n", 2, 25, "expected a number, found the text 'soon'", ""),
        ("replies:\n  - {status: 200}\n", 2, 14, "expected 400 to 599, found the number 200", ""),
        ("replies:\n  - just text\n", 2, 5, "expected a map, found the text 'just text'", "write key: value"),
        ("replies: []\n", 1, 10, "no rules: the model cannot answer anything", ""),
        ("replys: []\n", 1, 1, "unknown key", "did you mean replies?"),
        ("replies:\n  - {tool_calls: [{arguments: {}}]}\n", 2, 19, "missing", "the tool's name"),
        (
            "replies:\n  - {tool_calls: [{name: a, arguments: 3}]}\n",
            2,
            40,
            "expected a map of the tool's arguments, found the number 3",
            "",
        ),
        ("replies:\n  - {status: 500, text: x}\n", 2, 25, "a rule with a status can only have an error", ""),
        ("replies:\n  - {tool_calls: [{name: a}], chunks: 2}\n", 2, 39, "there is no text to send in chunks", ""),
    ],
)
def test_script_file_problem_has_its_place_and_near_miss(
    tmp_path: Path, text: str, line: int, column: int, message: str, hint: str
) -> None:
    found = problems(tmp_path, text)
    assert (line, column, message) in [place[:3] for place in found]
    assert any(place[3] == hint for place in found)


def test_script_file_shows_all_its_problems_at_once(tmp_path: Path, golden: Golden) -> None:
    text = "replies:\n  - {match: {turn: x}}\n  - {error: no}\n"
    golden([(line, message) for line, _, message, _ in problems(tmp_path, text)])


def test_script_file_unknown_hole_is_refused(tmp_path: Path, golden: Golden) -> None:
    line, column, message, hint = only(tmp_path, "replies:\n  - text: '{{ promt }}'\n")
    assert (line, column, hint) == (2, 11, "did you mean prompt?")
    golden(message)


def test_script_file_bad_regex_is_refused(tmp_path: Path, golden: Golden) -> None:
    line, column, message, _ = only(tmp_path, "replies:\n  - {match: {prompt: '/(/'}, text: x}\n")
    assert (line, column) == (2, 22)
    golden(message)


@pytest.mark.parametrize(("flags", "strange"), [("g", "g"), ("gi", "g"), ("iy", "y")])
def test_script_file_unknown_regex_flag_is_refused(tmp_path: Path, flags: str, strange: str, golden: Golden) -> None:
    line, column, message, hint = only(tmp_path, f"replies:\n  - {{match: {{prompt: /cost/{flags}}}, text: x}}\n")
    assert (line, column, message) == (2, 22, f"unknown flag of a regular expression: {strange!r}")
    golden(hint)


@pytest.mark.parametrize("text", ["'{{ prompt'", "'{{ prompt }} and {{ result'", "'}} {{'", "'{{'"])
def test_script_file_unclosed_hole_is_refused(tmp_path: Path, text: str, golden: Golden) -> None:
    line, column, message, hint = only(tmp_path, f"replies:\n  - text: {text}\n")
    assert (line, column) == (2, 11)
    golden(message)
    assert hint


def test_script_file_hole_with_nothing_in_it_is_refused(tmp_path: Path) -> None:
    assert "unknown placeholder" in only(tmp_path, "replies:\n  - text: 'a {{ }} b'\n")[2]


def test_script_file_braces_of_json_are_not_holes(tmp_path: Path) -> None:
    file = tmp_path / "model.yaml"
    file.write_text("""replies:\n  - text: '{"a": {"b": 1}}'\n""")
    load_script(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("replies:\n  - text: a\n---\nreplies: []\n", "a second document starts here"),
        ("replies:\n  - text: !!python/object:os.system a\n", "the tag !!python/object:os.system cannot be used here"),
    ],
)
def test_script_file_is_read_as_strictly_as_a_spec(tmp_path: Path, text: str, message: str) -> None:
    assert message in [place[2] for place in problems(tmp_path, text)]


def test_script_file_rule_behind_one_that_fits_all_is_refused(tmp_path: Path, golden: Golden) -> None:
    line, _, message, _ = only(tmp_path, "replies:\n  - text: a\n  - {match: {turn: 2}, text: b}\n")
    assert line == 3
    golden(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "the file is empty"),
        (b"replies:\n\t- x", "not readable as YAML"),
        (b"a: \xff", "not UTF-8"),
        (b"replies: " + b"[" * 5000, "nested deeper than 100 levels"),
        (b"replies: &a [*a]", "the alias *a is inside its own anchor"),
    ],
)
def test_script_file_that_is_not_yaml_is_refused(tmp_path: Path, text: bytes, message: str) -> None:
    assert only(tmp_path, text)[2].startswith(message)


def test_script_file_that_is_missing_is_refused(tmp_path: Path, golden: Golden) -> None:
    with pytest.raises(SpecError) as raised:
        load_script(tmp_path / "none.yaml")
    golden(raised.value.problems[0].message)


def test_script_file_aliases_stay_bounded(tmp_path: Path) -> None:
    wide = ["a: &l0 [1]"] + [f"k{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 8)]
    deep = ["a: &l0 [1]"] + [f"k{n}: &l{n} [*l{n - 1}]" for n in range(1, 2000)]
    for lines, message in (
        (wide, "aliases expand to more than 100,000 values"),
        (deep, "nested deeper than 100 levels"),
    ):
        arguments = "".join(f"        {line}\n" for line in lines)
        text = f"replies:\n  - tool_calls:\n    - name: x\n      arguments:\n{arguments}"
        assert message in [place[2] for place in problems(tmp_path, text)]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="replis:-{}[]'\"&* \n\ttextmach12|>#!~", max_size=80))
def test_script_file_mangled_is_a_problem_never_a_traceback(tmp_path: Path, text: str) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("replies:\n  - text: a\n" + text, encoding="utf-8")
    with contextlib.suppress(SpecError):
        load_script(file)
