"""Texts that are not ours: equal if they differ only in what changes from trial to trial."""

from __future__ import annotations

import pytest
from fingerprint_pairs import APART_HELD_OUT, APART_TUNED, SAME_HELD_OUT, SAME_TUNED
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.fingerprint import READ, compute_fingerprint

SAME = (
    ("raised: ValueError: bad value 12 for '7 of x'", "raised: ValueError: bad value 13 for 'y or z'"),
    ("no file /tmp/tmpab1/x.py", "no file /tmp/tmpzz9/y/x.py"),
    ("order-17aa was refunded twice", "order-18ab was refunded twice"),
    ("no answer at 2026-11-17T12:00:01Z", "no answer at 2026-11-18T02:00:01.5Z"),
    ("trial 7f3a2c99ab was lost", "trial 81aa2c99ab was lost"),
    ("cannot connect to 127.0.0.1:41231", "cannot connect to 127.0.0.1:50112"),
    ("refused: port=41231", "refused: port=50112"),
    ("took 1234 ms", "took  99 ms"),
    ("KeyError: order8812", "KeyError: order9944"),
)
APART = (
    ("raised: ValueError: x", "raised: KeyError: x"),
    ("raised: KeyError: 'price'", "raised: KeyError: 'name'"),
    ("timeout", "crashed"),
    ("answered with an error: status 503", "answered with an error: status 401"),
    ("pytest exited with 1", "pytest exited with 137"),
    ("raised: HTTPStatusError: 502", "raised: HTTPStatusError: 429"),
    ("crashed: exit code -9", "crashed: exit code -11"),
    ("'NoneType' object has no attribute 'get'", "'dict' object has no attribute 'get'"),
    ('relation "orders" does not exist', 'relation "items" does not exist'),
    ("the agent's model didn't answer", "the agent's tool didn't answer"),
    ("a call to 10.0.0.1 was denied", "a call to 169.254.169.254 was denied"),
    ("port 5432 refused", "port 6379 refused"),
    ("wrote /v1/orders", "wrote /v1/refunds"),
    ("failed: '401 Unauthorized' for url", "failed: '403 Forbidden' for url"),
    ("collation utf8mb4_general_ci differs", "collation utf8mb4_unicode_ci differs"),
)


@pytest.mark.parametrize(("one", "other"), SAME + SAME_TUNED)
def test_what_changes_from_trial_to_trial_goes(one: str, other: str) -> None:
    assert compute_fingerprint(one) == compute_fingerprint(other)


@pytest.mark.parametrize(("one", "other"), APART + APART_TUNED)
def test_what_tells_causes_apart_stays(one: str, other: str) -> None:
    assert compute_fingerprint(one) != compute_fingerprint(other)


def test_the_error_rates_on_the_pairs_that_nobody_tuned_on() -> None:
    joined = [pair for pair in APART_HELD_OUT if compute_fingerprint(pair[0]) == compute_fingerprint(pair[1])]
    split = [pair for pair in SAME_HELD_OUT if compute_fingerprint(pair[0]) != compute_fingerprint(pair[1])]
    assert (joined, len(split) <= 1) == ([], True), split


@given(st.text(max_size=READ + 100))
def test_any_text_has_one_that_ends_and_is_its_own(text: str) -> None:
    assert len(compute_fingerprint(text)) <= 2 * READ
    assert compute_fingerprint(text) == compute_fingerprint(text + " " if len(text) < READ else text)
