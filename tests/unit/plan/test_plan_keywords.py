"""-k: words, and, or, not, as pytest's users know them."""

from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.plan.select import parse_keywords

NAMES = ("always-cite-source", "search-down", "What was ACME's revenue?")


def test_expressions() -> None:
    for expression, fits in [
        ("cite", True),
        ("CITE", True),
        ("cite and down", True),
        ("cite and calm", False),
        ("calm or down", True),
        ("not calm", True),
        ("not (calm or down)", False),
        ("calm or down and not cite", False),
        ("(calm or down) and cite", True),
        ("not not cite", True),
        ("'was acme'", True),
        ('"revenue?" and search-down', True),
        ("android", False),
        ("notary or cite", True),
    ]:
        assert parse_keywords(expression)(NAMES) is fits, (expression, fits)


@pytest.mark.parametrize("expression", ["and", "cite and", "(cite", "cite)", "not", "cite down", "'cite", "()", "   "])
def test_what_cannot_be_read_is_refused(expression: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_keywords(expression)
    assert raised.value.code == "selection-invalid"
