"""Values by type hints: what was found, what was expected, the near miss, all at once."""

from spec_texts import HTTP, MATRIX, RULES


def test_unknown_key_names_the_near_miss(file):
    found = file.error(HTTP + "scorng: {}\n")
    assert (found.path, found.message, found.hint, found.code) == (
        "scorng",
        "unknown key",
        "did you mean scoring?",
        "unknown-key",
    )


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


def test_wrong_type_says_what_was_found_and_expected(file):
    found = file.error(HTTP + "replicas: many\n")
    assert found.code == "wrong-type"
    assert (found.line, found.column, found.length) == (4, 11, 4)


def test_number_where_text_is_wanted_says_how_to_quote(file):
    found = file.error('agent: {endpoint: "http://x"}\ngolden_prompts: [42]\n')
    assert found.code == "wrong-type"
    assert found.hint == 'quote it: "42"'


def test_enum_value_names_the_near_miss(file):
    found = file.error(HTTP + MATRIX + RULES.replace("value: Paris", "value: Paris, severity: critcal"))
    assert found.hint == "did you mean critical?"


def test_range_is_named(file):
    found = file.error(HTTP + "scoring: {min_score: 120}\n")
    assert found.code == "out-of-range"


def test_missing_required_key(file):
    found = file.error("golden_prompts: [x]\n")
    assert (found.path, found.message, found.code) == ("agent", "missing", "missing-key")


def test_file_that_is_a_list_is_an_error(file):
    assert file.error("- a\n- b\n").code == "wrong-type"


def test_missing_file_and_folder_are_problems(file, tmp_path):
    from holdfast.spec import check

    for path in (tmp_path / "nowhere.yaml", tmp_path):
        (found,) = check(path, environ={}).problems
        assert found.code == "unreadable-file"


def test_text_that_is_not_utf8_has_a_place(tmp_path):
    from holdfast.spec import check

    path = tmp_path / "latin.yaml"
    path.write_bytes(b"agent:\n  endpoint: \xe9\n")
    (found,) = check(path, environ={}).problems
    assert (found.code, found.line, found.column) == ("not-utf8", 2, 13)


def test_byte_order_mark_is_fine(tmp_path):
    from holdfast.spec import check

    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + HTTP.encode())
    assert check(path, environ={}).spec is not None


def test_file_over_10_mb_is_refused(tmp_path):
    from holdfast.spec import check

    path = tmp_path / "big.yaml"
    path.write_bytes(b"# " + b"x" * 10_000_000)
    (found,) = check(path, environ={}).problems
    assert found.code == "unreadable-file"


def test_load_raises_with_every_problem(tmp_path):
    import pytest

    from holdfast.errors import SpecError
    from holdfast.spec import load

    path = tmp_path / "s.yaml"
    path.write_text(HTTP + "a: 1\nb: 2\n")
    with pytest.raises(SpecError) as raised:
        load(path, environ={})
    assert len(raised.value.problems) == 2
    assert raised.value.source.startswith("\nagent")


def test_load_returns_warnings(file, tmp_path):
    from holdfast.spec import load

    path = tmp_path / "s.yaml"
    path.write_text(HTTP + "scoring: {min_score: 0.8}\n")
    spec, warnings = load(path, environ={})
    assert spec.scoring.min_score == 0.8
    assert [w.code for w in warnings] == ["lint-min-score-fraction"]
