from __future__ import annotations

from typing import Any

import pytest
from check_exhibits import exhibit

from holdfast.checks.response.json_field import JsonField
from holdfast.judge.rule import RuleJudge
from holdfast.model.observation import Observation, Turn
from holdfast.model.spec import Invariant

ANSWER = '{"status": "refunded", "total": 12.50, "paid": true, "items": [{"id": 1}, {"id": 2}], "note": null, "a.b": 3}'


def passed(path: str, text: str = ANSWER, **settings: Any) -> bool | None:
    return JsonField(path, **settings).decide(exhibit(text)).passed


@pytest.mark.parametrize(
    ("path", "settings"),
    [
        ("$.status", {"equals": "refunded"}),
        ("status", {"matches": "^refund"}),
        ("total", {"equals": 12.5}),
        ("total", {"matches": r"^12\.5$"}),
        ("total", {"value_type": "number"}),
        ("paid", {"equals": True, "value_type": "boolean"}),
        ("note", {"equals": None}),
        ("note", {"value_type": "null"}),
        ("items.1.id", {"equals": 2, "value_type": "integer"}),
        ("items[1].id", {"equals": 2}),
        ("items[-1]['id']", {"equals": 2}),
        ("$.items[*].id", {"value_type": "integer"}),
        ("items", {"contains": {"id": 2}}),
        ("items.0", {"contains": "id"}),
        ("status", {"contains": "fund"}),
        ("$", {"contains": "status", "value_type": "object"}),
        ("$['a.b']", {"equals": 3}),
    ],
)
def test_a_field_that_is_as_expected_passes(path: str, settings: dict[str, Any]) -> None:
    assert passed(path, **settings)


@pytest.mark.parametrize(
    ("path", "settings"),
    [
        ("status", {"equals": "Refunded"}),
        ("status", {"equals": "refunded", "value_type": "number"}),
        ("total", {"equals": "12.5"}),
        ("total", {"value_type": "integer"}),
        ("paid", {"equals": 1}),
        ("paid", {"value_type": "number"}),
        ("note", {"equals": ""}),
        ("$.items[*].id", {"equals": 1}),
        ("items", {"contains": {"id": 3}}),
        ("status", {"matches": "^REFUND"}),
        ("missing", {"equals": None}),
        ("items.2", {"value_type": "object"}),
    ],
)
def test_any_other_value_fails(path: str, settings: dict[str, Any]) -> None:
    assert passed(path, **settings) is False


@pytest.mark.parametrize(
    "text", ["status: refunded", f"```json\n{ANSWER}\n```", "{“status”: “refunded”}", "[" * 100_000]
)
def test_an_answer_that_is_not_json_fails(text: str) -> None:
    assert passed("status", text, equals="refunded") is False


DEEP = "[" * 20_000 + "]" * 20_000


@pytest.mark.parametrize(
    ("path", "settings", "wanted"),
    [
        ("$", {"value_type": "array"}, True),
        ("0.0", {"value_type": "object"}, False),
        ("$", {"equals": []}, False),
        ("$", {"matches": "x"}, None),
        ("$..a", {"equals": 1}, None),
        ("a", {"equals": 1}, False),
    ],
)
def test_json_of_any_depth_is_not_an_error(path: str, settings: dict[str, Any], wanted: bool | None) -> None:
    assert passed(path, DEEP, **settings) is wanted


def test_negated_a_missing_field_is_unproven() -> None:
    def outcome(path: str, text: str = ANSWER) -> str:
        turn = Turn("q", text=text, ending="answered")
        rule = RuleJudge(Invariant("r", "json_field", {"path": path, "equals": "refunded"}, negate=True), 1000)
        return rule.judge_turn(turn, Observation("t", turns=(turn,)), None)[0]

    assert outcome("status") == "fail"
    assert outcome("total") == "pass"
    assert outcome("missing") == "unproven"
    assert outcome("status", "refunded") == "unproven"


def test_a_key_that_is_there_twice_proves_nothing() -> None:
    assert passed("status", '{"status": "failed", "status": "refunded"}', equals="refunded") is False
    assert passed("0.status", '[{"a": {"b": 1, "b": 1}, "status": "refunded"}]', equals="refunded") is False
    assert passed("1.status", '[{"status": "failed"}, {"status": "refunded"}]', equals="refunded") is True
    for check, settings in (("json_field", {"path": "a", "equals": 1}), ("valid_json", {"path": "b"})):
        turn = Turn("q", text='{"a": 1, "a": 2}', ending="answered")
        rule = RuleJudge(Invariant("r", check, settings, negate=True), 1000)
        assert rule.judge_turn(turn, Observation("t", turns=(turn,)), None)[0] == "unproven"


def test_settings_that_say_nothing_are_refused() -> None:
    assert [field for field, _ in JsonField("a").problems()] == ["path"]
    assert [field for field, _ in JsonField("$[", matches="(").problems()] == ["path", "matches"]
    assert not list(JsonField("a", equals=None).problems())
    assert [code for code, _, _ in JsonField("a", matches=r"\\$\\d+").lint()] == ["lint-never-matches"]


@pytest.mark.parametrize(
    ("statuses", "asked", "forbidden"),
    [
        ('["paid", "paid"]', "pass", "fail"),
        ('["open", "held"]', "fail", "pass"),
        ('["open", "paid"]', "fail", "fail"),
        ('["paid", "open", "open"]', "fail", "fail"),
        ('["paid"]', "pass", "fail"),
        ('["open"]', "fail", "pass"),
        ("[]", "fail", "unproven"),
    ],
)
@pytest.mark.parametrize(
    "settings", [{"equals": "paid"}, {"matches": "^pai"}, {"contains": "ai", "value_type": "string"}]
)
def test_a_rule_asks_for_all_parts_of_a_path_and_negated_for_none(
    statuses: str, asked: str, forbidden: str, settings: dict[str, Any]
) -> None:
    turn = Turn("?", f'{{"items": {statuses}}}')
    for negate, outcome in ((False, asked), (True, forbidden)):
        rule = RuleJudge(Invariant("r", "json_field", {"path": "$.items[*]", **settings}, negate=negate), 1000)
        assert rule.judge_turn(turn, Observation("t", (turn,)), None)[0] == outcome
