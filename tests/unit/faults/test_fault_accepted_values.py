"""Which of the changes of a value are tried where the client may refuse some."""

from __future__ import annotations

from itertools import count
from typing import Any

from holdfast.faults.values import NO_PLACE, TRIES, change_each_text, choose_fitting


def test_one_text_of_every_place_is_tried_before_a_second_of_any() -> None:
    rows = [{"kind": "a long word of an enum", "id": {"code": "x"}} for _ in range(TRIES)]
    value = {"rows": rows, "note": "free"}
    tried = list(change_each_text(value, lambda text: "changed"))
    assert tried[0]["rows"][0]["kind"] == "changed"
    assert tried[1]["note"] == "changed"
    assert tried[2]["rows"][0]["id"]["code"] == "changed"
    assert len(tried) == 2 * TRIES + 1
    assert value == {"rows": rows, "note": "free"}


def test_a_free_text_is_found_behind_any_number_of_others(context: Any) -> None:
    ctx = context()
    ctx.fits = lambda value: value["note"] == "changed"
    value = {"rows": [{"kind": f"a long word {n}"} for n in range(TRIES * 3)], "note": "free"}
    assert choose_fitting(value, change_each_text(value, lambda text: "changed"), ctx)["note"] == "changed"


def test_tries_end_and_the_reason_says_how_many_there_were(context: Any) -> None:
    value, seen = "value", []
    ctx = context()
    ctx.fits = lambda other: bool(seen.append(other))
    assert choose_fitting(value, count(), ctx) is value
    assert seen == list(range(TRIES))
    assert f"the first {TRIES} places" in ctx.idle
    assert choose_fitting(value, range(TRIES), ctx) is value
    assert ctx.idle == NO_PLACE
