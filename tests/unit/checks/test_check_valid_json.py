import pytest
from check_exhibits import exhibit

from holdfast.checks.response.valid_json import ValidJson
from holdfast.errors import HarnessError
from holdfast.model.fingerprint import compute_fingerprint

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize("text", ["{}", " [1, 2]\n", '"x"', "null", "1e999", "-0.5", '{"a": {"b": []}}', "1" * 5000])
def test_json_passes(text):
    assert ValidJson().decide(exhibit(text)).passed


@pytest.mark.parametrize("text", ["{", "{'a': 1}", "Sure: {}", "{} {}", "NaN", "[1,]", "01", '{"a": Infinity}'])
def test_what_is_not_json_fails(text):
    finding = ValidJson().decide(exhibit(text))
    assert finding.passed is False
    assert finding.code == "json-invalid"


def test_fenced_json_fails_and_the_reason_says_so():
    finding = ValidJson().decide(exhibit('```json\n{"a": 1}\n```'))
    assert finding.passed is False
    assert "fenced" in finding.reason


def test_the_place_where_reading_stopped_is_marked():
    assert ValidJson().decide(exhibit("[1, x]")).marks == ((4, 5),)


@pytest.mark.parametrize("depth", [400, 5_000, 20_000])
def test_deep_nesting_is_read(depth):
    nested = '{"a": [' * depth + "1" + "]}" * depth
    assert ValidJson().decide(exhibit(nested)).passed is True
    assert ValidJson(path="a.0.a").decide(exhibit(nested)).passed is True
    assert ValidJson().decide(exhibit(nested[:-1])).passed is False
    assert ValidJson().decide(exhibit("[" * depth)).passed is False


def test_what_only_holdfast_cannot_check_is_not_a_fail():
    deep = "[" * 5_000 + "]" * 5_000
    assert ValidJson(schema={"type": "array"}).decide(exhibit(deep)).passed is not False


def test_schema_must_hold():
    assert ValidJson(schema=SCHEMA).decide(exhibit('{"n": 1}')).passed
    finding = ValidJson(schema=SCHEMA).decide(exhibit('{"n": "one"}'))
    assert finding.passed is False
    assert (finding.code, finding.key) == (
        "schema-broken",
        (compute_fingerprint('at n: "one" is not of type "integer"'),),
    )
    assert "integer" in finding.reason
    assert ValidJson(schema=SCHEMA).decide(exhibit("{}")).passed is False


@pytest.mark.parametrize(
    ("name", "bad", "good"),
    [
        ("date", "2026-13-45", "2026-01-05"),
        ("date-time", "2026-01-05", "2026-01-05T10:00:00Z"),
        ("email", "nobody", "ann@example.com"),
        ("uuid", "123", "123e4567-e89b-12d3-a456-426614174000"),
    ],
)
def test_formats_of_the_schema_must_hold(name, bad, good):
    check = ValidJson(schema={"type": "string", "format": name})
    assert check.decide(exhibit(f'"{bad}"')).code == "schema-broken"
    assert check.decide(exhibit(f'"{good}"')).passed is True
    assert ValidJson(schema={"type": "string", "format": "own"}).decide(exhibit(f'"{bad}"')).passed is True


@pytest.mark.parametrize("path", ["items.0.n", "$.items[0].n", "$..n"])
def test_path_must_exist(path):
    assert ValidJson(path=path).decide(exhibit('{"items": [{"n": null}]}')).passed
    finding = ValidJson(path=path).decide(exhibit('{"items": []}'))
    assert finding.passed is False
    assert path in finding.reason


def test_schema_applies_to_every_part_at_path():
    rule = ValidJson(schema={"type": "integer"}, path="$.items[*]")
    assert rule.decide(exhibit('{"items": [1, 2]}')).passed
    assert rule.decide(exhibit('{"items": [1, "2"]}')).passed is False


@pytest.mark.parametrize(
    "schema", [{"type": "nonsense"}, {"properties": []}, {"$ref": "https://example.com/s.json"}, {"$ref": "#/none"}]
)
def test_invalid_schema_is_a_problem_and_nothing_is_fetched(schema):
    assert [field for field, _ in ValidJson(schema=schema).problems()] == ["schema"]


@pytest.mark.parametrize("path", ["$.a[", "a..b", "", "$["])
def test_bad_path_is_a_problem(path):
    assert [field for field, _ in ValidJson(path=path).problems()] == ["path"]


def test_good_settings_have_no_problems():
    assert not list(ValidJson(schema=SCHEMA, path="$.items[0]").problems())
    assert not list(ValidJson(path="items.0.n").problems())


def test_half_a_surrogate_pair_is_reported_not_raised():
    finding = ValidJson(schema={"type": "string"}).decide(exhibit(r'"\ud800"'))
    assert finding.passed is None
    finding.reason.encode()


def test_a_schema_that_json_of_any_depth_breaks_is_a_fail():
    deep = "[" * 20_000 + "]" * 20_000
    assert ValidJson({"type": "array"}).decide(exhibit(deep)).passed
    assert ValidJson({"type": "object"}).decide(exhibit(deep)).passed is False


@pytest.mark.parametrize("schema", [{"$ref": "#/none"}, {"properties": {"n": {"$ref": "other.json"}}}, {"type": "odd"}])
def test_a_schema_that_cannot_be_used_is_not_a_violation_of_the_agent(schema):
    with pytest.raises(HarnessError):
        ValidJson(schema).decide(exhibit('{"n": 1}'))
