"""YAML to nodes: the traps of YAML closed, the limits kept."""

import pytest

from golden_words import Golden
from holdfast.reading.tree import MAX_ALIAS_NODES, parse


def read(text):
    node, problems = parse(text)
    assert node is not None, problems
    assert problems == []
    return node.to_plain()


def problem(text):
    _, problems = parse(text)
    assert len(problems) == 1, problems
    return problems[0]


def test_scalars_mean_what_they_look_like():
    for written, means in [
        ("on", "on"),
        ("no", "no"),
        ("Yes", "Yes"),
        ("true", True),
        ("False", False),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("0755", "0755"),
        ("0x1F", 31),
        ("1_000", 1000),
        ("12345678901234567890", "12345678901234567890"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-7", -7),
        ("~", None),
        ("", None),
        ("'true'", "true"),
        ("!!str 5", "5"),
        ("!!float 5", 5.0),
    ]:
        assert read(f"a: {written}") == {"a": means}, (written, means)


def test_duplicate_key_is_an_error_with_both_lines():
    found = problem("a:\n  b: 1\n  c: 2\n  b: 3\n")
    assert (found.code, found.path, found.line, found.column) == ("duplicate-key", "a.b", 4, 3)
    assert "first on line 2" in found.message


def test_anchors_and_merge_keys_work_and_what_is_written_wins():
    text = "base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\ntwo: {y: 4, <<: [*b]}\n"
    assert read(text)["one"] == {"x": 1, "y": 3}
    assert read(text)["two"] == {"x": 1, "y": 4}


def test_quoted_merge_sign_is_an_ordinary_key():
    assert read("a: {'<<': 1}") == {"a": {"<<": 1}}


def test_alias_bomb_is_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 8)]
    assert f"{MAX_ALIAS_NODES:,}" in problem("\n".join(lines)).message


def test_alias_to_itself_is_refused():
    assert problem("a: &a [*a]").code == "yaml-form"


def test_nesting_is_limited():
    assert read("[" * 100 + "]" * 100) is not None
    assert "nested deeper" in problem("[" * 101 + "]" * 101).message


def test_one_document():
    assert "second document" in problem("a: 1\n---\nb: 2\n").message


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_empty_file_is_a_problem(text):
    node, problems = parse(text)
    assert (node is None and problems) or node.kind == "null"


@pytest.mark.parametrize("text", ["a: [", "a: b: c", "\ta: 1", "a: 'x", "%", "a: \x01", "{", "a: *nowhere", '"\\x"'])
def test_syntax_errors_have_a_place(text):
    found = problem(text)
    assert found.line >= 1
    assert found.column >= 1


def test_strange_tags_are_errors():
    assert "!!python/object" in problem("a: !!python/object:os.system x").message


def test_key_that_is_a_list_is_an_error():
    assert problem("? [a]\n: 1\n").code == "yaml-form"


def test_places_count_from_one():
    node, _ = parse("a:\n  bc: 'def'\n")
    key, value = node.pairs["a"][1].pairs["bc"]
    assert (key.line, key.column, key.length) == (2, 3, 2)
    assert (value.line, value.column, value.length, value.style) == (2, 7, 5, "'")


def test_aliases_do_not_nest_deeper_than_the_text_may(golden: Golden):
    lines = ["a: &l0 [1]", *(f"k{n}: &l{n} [*l{n - 1}]" for n in range(1, 200))]
    golden(problem("\n".join(lines)).message)
