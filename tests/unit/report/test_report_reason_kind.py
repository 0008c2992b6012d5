"""Reasons that are the same but for what they quote are one kind; those of different causes are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.report.reason_kind import LONGEST, kind

SAME = (
    ("found '$4.2 million' which must not appear", "found 'it's 12' which must not appear (and 2 more)"),
    ("took 1234 ms, over the limit of 1000 ms", "took 99 ms, over the limit of 1000 ms"),
    ("scored 0.2, below 0.7: too rude", "scored 0.31, below 0.7: The text: it never says"),
    ("scored 0.2, the median of 3 votes, below 0.7: rude", "scored 0.4, the median of 3 votes, below 0.7"),
    ("only 0.42 like the calm answer (words, needs 0.8): 12 vs 13", "only 0.1 like the calm answer (words, needs 0.8)"),
    ("found email jo…, email an…", "found email ka… and 3 more"),
    ("ended in raised: ValueError: bad value 12 for '7'", "ended in raised: ValueError: bad value 13 for 'x y'"),
    ("pay was called 1 time, not 2 times", "pay was called 0 times, not 2 times"),
    ("no file /tmp/tmpab1/x.py", "no file /tmp/tmpzz9/y/x.py"),
    ("order-17 was refunded twice", "order-18 was refunded twice"),
    ("the agent did not call search; tools called: a, b", "the agent did not call search"),
    ("pay was not called after search; called: search, mail", "pay was not called after search; called: search"),
    ("last_request.body.text is Hello Bob, not Hi", "last_request.body.text is Bye, not Hi"),
    ('done 2 times: pay {"order": 12}', 'done 3 times: pay {"order": 99}'),
    ("no answer at 2026-11-17T12:00:01Z", "no answer at 2026-11-18T02:00:01.5Z"),
    ("raised: ValueError: 12 items", "raised: ValueError: 13 items"),
    ("trial 7f3a2c99ab was lost", "trial 81aa2c99ab was lost"),
    ("cannot connect to 127.0.0.1:41231", "cannot connect to 127.0.0.1:50112"),
    ("refused: port=41231", "refused: port=50112"),
)
APART = (
    ('request_count of {"path":"/mails"} is 2, not 1', 'request_count of {"path":"/mails"} is 0, not 1'),
    ("pay was called 3 times, not 2 times", "pay was called 1 time, not 2 times"),
    ("nothing matches (?i)source", "nothing matches (?i)reference"),
    ("ended in raised: ValueError: x", "ended in raised: KeyError: x"),
    ("ended in raised: KeyError: 'price'", "ended in raised: KeyError: 'name'"),
    ("ended in timeout", "ended in crashed"),
    ("no answer: timeout after 30000 ms", "no answer: the agent crashed: exit code 1"),
    ("the agent answered with an error: status 503", "the agent answered with an error: status 401"),
    ("pytest exited with 1, not 0", "pytest exited with 137, not 0"),
    ('breaks the schema: "price" is a required property', 'breaks the schema: "name" is a required property'),
    ('request_count of {"path":"/refunds"} is 2, more than 1', 'request_count of {"path":"/mail"} is 2, more than 1'),
    ("requests[0].body is 1, not 2", "requests[1].body is 1, not 2"),
    ("last_request.body.a is 1, not 2", "last_request.body.b is 1, not 2"),
    ("there is no a.md", "there is no b.md"),
    ("the agent did not call search", "the agent did not call pay"),
    ("wrote /v1/orders", "wrote /v1/refunds"),
    ("address_1 is empty", "address_2 is empty"),
    ("found email jo…", "found phone +4…"),
    ("'source' does not appear", "'reference' does not appear"),
    ("found 'x' which must not appear", "a.md contains 'x', which must not appear"),
    ("raised: HTTPStatusError: 502", "raised: HTTPStatusError: 429"),
    ("crashed: exit code -9", "crashed: exit code -11"),
    ("'NoneType' object has no attribute 'get'", "'dict' object has no attribute 'get'"),
    ('relation "orders" does not exist', 'relation "items" does not exist'),
    ("the agent's model didn't answer", "the agent's tool didn't answer"),
    ("a call to 10.0.0.1 was denied", "a call to 169.254.169.254 was denied"),
    ("port 5432 refused", "port 6379 refused"),
    ("last_request.status is 404, not 200", "last_request.status is 500, not 200"),
)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_is_quoted_counted_or_measured_makes_no_cause_of_its_own(one: str, other: str) -> None:
    assert kind(one) == kind(other)


@pytest.mark.parametrize(("one", "other"), APART)
def test_distinct_causes_stay_apart(one: str, other: str) -> None:
    assert kind(one) != kind(other)


@given(st.text(max_size=3 * LONGEST))
def test_any_text_has_a_kind_and_a_kind_is_short(text: str) -> None:
    assert len(kind(text)) <= 2 * LONGEST


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.text("abc 1$é\n", max_size=20), st.text("x.…", max_size=20))
def test_numbers_and_quoted_words_never_tell(one: int, other: int, said: str, told: str) -> None:
    assert kind(f"took {one} ms and said '{said}' twice") == kind(f"took {other} ms and said '{told}' twice")
