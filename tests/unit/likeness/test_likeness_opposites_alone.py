"""Answers that are nothing but one word, or one heading: opposites are not the same."""

from __future__ import annotations

import pytest

from holdfast.likeness.compare import compare

OPPOSITES = [
    ("Approved", "Denied"), ("True", "False"), ("Pass", "Fail"), ("Buy now.", "Sell now."), ("Open", "Closed"),
    ("enabled", "disabled"), ("**Approved**", "**Denied**"), ("# Approved", "# Denied"), ("Red", "Blue"),
    ('{"ok":"Approved"}', '{"ok":"Denied"}'),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), OPPOSITES)
def test_opposites_without_anything_around_them_are_not_alike(one: str, other: str) -> None:
    assert compare(one, other, "lexical").score == 0.0
    assert compare(one, one, "lexical").score == 1.0
