"""A judge's reply: strict about the score, indifferent to the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.checks.state.judging import Vote, find_median_vote, is_vote, parse_vote


@pytest.mark.parametrize(
    ("text", "vote"),
    [
        ('{"score": 0.7, "passed": false, "reason": "so so"}', Vote(0.7, False, "so so")),
        ('{"score": 1}', Vote(1.0)),
        ('  {"score": 0, "passed": "yes", "reason": 3, "more": []}\n', Vote(0.0)),
        ('```json\n{"score": 0.5}\n```', Vote(0.5)),
        ('```\n{"score": 0.5}```\n', Vote(0.5)),
    ],
)
def test_a_rating_is_read(text: str, vote: Vote) -> None:
    assert parse_vote(text) == vote


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0.9",
        "[0.9]",
        "null",
        "{}",
        '{"score": "0.9"}',
        '{"score": true}',
        '{"score": null}',
        '{"score": 1.01}',
        '{"score": -0.1}',
        '{"score": NaN}',
        '{"score": Infinity}',
        '{"score": 7}',
        'The text says {"score": 1}.',
        '```json\n{"score": 1}\n```\nand more',
        '{"score": 1} {"score": 0}',
        '{"score": 0.1, "score": 1}',
        '{"score": 1, "more": {"a": 1, "a": 2}}',
        "<html>down</html>",
        '{"a":' * 100_000,
    ],
)
def test_anything_else_is_malformed_and_says_why(text: str) -> None:
    assert not is_vote(text)
    with pytest.raises(ValueError, match=r"its (reply|score) is not") as why:
        parse_vote(text)
    assert len(str(why.value)) < 200


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda v: st.dictionaries(st.text(), v), max_leaves=5
    )
)
def test_no_reply_makes_a_score_outside_of_0_to_1(value: Any) -> None:
    for text in (json.dumps(value), json.dumps({"score": value})):
        if is_vote(text):
            assert 0 <= parse_vote(text).score <= 1


def test_votes_come_to_their_median_with_the_reason_that_is_nearest() -> None:
    votes = [Vote(0.9, reason="high"), Vote(0.1, reason="low"), Vote(0.6, reason="between")]
    assert find_median_vote(votes) == (0.6, votes[2])
    assert find_median_vote(votes[:2])[0] == pytest.approx(0.5)


def test_a_reason_is_kept_to_two_thousand_characters() -> None:
    assert parse_vote(json.dumps({"score": 1, "reason": "x" * 2_001})).reason == "x" * 2_000
