"""Keys of findings: two wrong values have the same key if they have the same cause."""

from __future__ import annotations

import pytest
from check_exhibits import exhibit

from holdfast.checks.response.json_field import JsonField
from holdfast.checks.response.valid_json import ValidJson
from holdfast.checks.state.file_content import FileContent
from holdfast.checks.state.paths import PathState
from holdfast.checks.state.recorded import build_evidence
from holdfast.checks.values import Expectation, get_value_key
from world_kit import shown


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (2, 3, True),
        (0, 2, False),
        ("pending", "failed", False),
        ("ord_8812ab", "ord_9931cd", True),
        (None, False, False),
        ([1], {"a": 1}, False),
        ("2", 5, True),
    ],
)
def test_values_that_differ_from_1(one: object, other: object, same: bool) -> None:
    assert (get_value_key(one, 1) == get_value_key(other, 1)) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Sure, here it is", "I cannot do that", True),
        ("```json\n{}\n```", "Sure, here it is", False),
        ('{"a": 1,}', '{"a": 1', False),
        ('{"a": 1', '{"total": 25', True),
    ],
)
def test_answers_that_are_not_json(one: str, other: str, same: bool) -> None:
    keys = [ValidJson().decide(exhibit(text)).key for text in (one, other)]
    assert (keys[0] == keys[1]) is same


def test_a_field_with_another_value_has_the_value_in_its_key() -> None:
    check = JsonField("status", equals="refunded")
    keys = {check.decide(exhibit(f'{{"status": "{status}"}}')).key for status in ("pending", "failed", "pending")}
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("content", "key"), [("", "empty"), (" \n", "empty"), ("other", "text"), ("Total: none", "pattern")]
)
def test_what_a_file_lacks(content: str, key: str) -> None:
    check = FileContent("a", contains="Total", pattern=r"\d+")
    finding = check.decide(shown(build_evidence(["a", "content"], PathState("file", content=content))))
    assert (finding.code, finding.key) == ("content-missing", (key,))


def test_an_expectation_without_operators_expects_nothing() -> None:
    assert Expectation().empty
    assert list(Expectation().find_mismatches(1, "1")) == []
    assert not Expectation(None).empty
