"""Two looks at the tables of a database."""

from __future__ import annotations

import pytest

from holdfast.world.services.mysql.audit import mark_emptied
from holdfast.world.services.write_tally import Tables, TableShape, find_remade

OLD = TableShape("id int", (1,))


@pytest.mark.parametrize(
    ("after", "op"),
    [
        (OLD, None),
        (None, "drop"),
        (TableShape("id text", (2,)), "alter"),
        (TableShape("id int", (2,), empty=True), "truncate"),
        (TableShape("id int", (2,)), "rewrite"),
    ],
)
def test_what_has_changed_of_a_table(after: TableShape | None, op: str | None) -> None:
    assert find_remade({"t": OLD}, {"t": after} if after else {}) == ({"t": op} if op else {})


def test_a_new_table_was_made_and_a_part_is_reported_as_its_table() -> None:
    parts: Tables = {"t_1": TableShape("id int", (1,), of="t"), "t_2": TableShape("id int", (2,), of="t")}
    after: Tables = {name: TableShape("id int", (9,), of="t", empty=True) for name in parts}
    assert find_remade(parts, {**after, "new": OLD}) == {"t": "truncate", "new": "create"}


def test_a_table_that_is_known_by_its_date_alone_has_lost_its_rows() -> None:
    before: Tables = {name: TableShape("", ("now",), dated=True) for name in ("lost", "counted")}
    before["always"] = TableShape("", ("now",), dated=True, empty=True)
    after: Tables = {name: TableShape("", ("now",), dated=True, empty=True) for name in before}
    assert find_remade(before, mark_emptied(before, after, {"counted": {"write": 3}})) == {"lost": "truncate"}
