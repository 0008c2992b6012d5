"""Values by type hints: what was found, what was expected, the near miss, all at once."""

import pytest
from spec_texts import HTTP, MATRIX, RULES

from holdfast.errors import SpecError
from holdfast.spec import check, load

CRITCAL = HTTP + MATRIX + RULES.replace("value: Paris", "value: Paris, severity: critcal")


@pytest.mark.parametrize(
    ("text", "path", "code", "hint"),
    [
        (HTTP + "scorng: {}\n", "scorng", "unknown-key", "did you mean scoring?"),
        (HTTP + "replicas: many\n", "replicas", "wrong-type", ""),
        ("agent: {endpoint: 'http://x'}\ngolden_prompts: [42]\n", "golden_prompts[0]", "wrong-type", 'quote it: "42"'),
        (CRITCAL, "contract.invariants[0].severity", "unknown-value", "did you mean critical?"),
        (HTTP + "scoring: {min_score: 120}\n", "scoring.min_score", "out-of-range", ""),
        ("golden_prompts: [x]\n", "agent", "missing-key", ""),
        ("- a\n- b\n", "", "wrong-type", ""),
    ],
)
def test_a_wrong_value_has_its_path_code_and_hint(file, text, path, code, hint):
    found = file.error(text)
    assert (found.path, found.code) == (path, code)
    assert hint in found.hint


def test_a_wrong_value_has_its_place(file):
    found = file.error(HTTP + "replicas: many\n")
    assert (found.line, found.column, found.length) == (4, 11, 4)


def test_every_error_of_the_file_is_shown_at_once(file):
    text = """
agent: {endpoint: "http://x", timeout: fast, methd: GET}
golden_prompts: []
contract:
  name: 5
  invariants:
    - {id: a, type: regexp, pattern: x}
    - {id: b, type: regex, pattern: "("}
    - {id: c, type: contains}
"""
    paths = [p.path for p in file.errors(text)]
    assert paths == [
        "agent.timeout",
        "agent.methd",
        "golden_prompts",
        "contract.name",
        "contract.invariants[0].type",
        "contract.invariants[1].pattern",
        "contract.invariants[2].value",
    ]


def test_missing_file_and_folder_are_problems(file, tmp_path):
    for path in (tmp_path / "nowhere.yaml", tmp_path):
        (found,) = check(path, environ={}).problems
        assert found.code == "unreadable-file"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"agent:\n  endpoint: \xe9\n", [("not-utf8", 2, 13)]),
        (b"\xef\xbb\xbf" + HTTP.encode(), []),
        (b"# " + b"x" * 10_000_000, [("unreadable-file", 0, 0)]),
    ],
    ids=["not utf-8", "byte order mark", "over 10 MB"],
)
def test_bytes_of_a_file(tmp_path, content, found):
    path = tmp_path / "s.yaml"
    path.write_bytes(content)
    assert [(one.code, one.line, one.column) for one in check(path, environ={}).problems] == found


def test_load_raises_with_every_problem(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(HTTP + "a: 1\nb: 2\n")
    with pytest.raises(SpecError) as raised:
        load(path, environ={})
    assert len(raised.value.problems) == 2
    assert raised.value.source.startswith("\nagent")


def test_load_returns_warnings(file, tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(HTTP + "scoring: {min_score: 0.8}\n")
    spec, warnings = load(path, environ={})
    assert spec.scoring.min_score == 0.8
    assert [w.code for w in warnings] == ["lint-min-score-fraction"]
