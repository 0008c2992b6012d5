"""A drift fixture damages a table by seeded luck, in real databases."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from servers_kit import Bay, bay, on_a_server

from holdfast.errors import QueryFailed
from holdfast.model.world import DriftKind, ServiceSpec
from holdfast.protocols.service import Database
from holdfast.world.services.drift import damage_table
from refused import refused

SPECS = {
    "postgres": ServiceSpec("db", "postgres", env={"POSTGRES_PASSWORD": "pw"}),
    "mysql": ServiceSpec("db", "mysql", env={"MYSQL_ROOT_PASSWORD": "pw", "MYSQL_DATABASE": "shop"}),
}
ROWS = ", ".join(f"({n}, 'c{n}@x', 'it''s {n}', '2020-01-{n:02d}')" for n in range(1, 29))
SEED = f"""CREATE TABLE customers (id int PRIMARY KEY, email varchar(9) NOT NULL, city varchar(9), born date NOT NULL);
INSERT INTO customers VALUES {ROWS};"""


@pytest.fixture(scope="module", params=list(SPECS))
def sea(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bay]:
    with bay(SPECS[request.param], tmp_path_factory.mktemp("drift")) as opened:
        yield opened


async def rows(db: Database) -> list[tuple[Any, ...]]:
    return list((await db.query("SELECT * FROM customers ORDER BY id", timeout_s=5)).rows)


def drifted(sea: Bay, kinds: tuple[DriftKind, ...], rate: float = 0.25, seed: int = 7) -> tuple[int, Any, Any]:
    async def scene(db: Database) -> tuple[int, Any, Any]:
        await db.execute(SEED)
        before = await rows(db)
        count = await damage_table(db, "customers", rate, kinds, Random(seed))
        return count, before, await rows(db)

    return sea.with_server(scene)


def test_null_empties_only_what_may_be_empty(sea: Bay) -> None:
    count, before, after = drifted(sea, ("null",))
    assert count == 7
    changed = [(b, a) for b, a in zip(before, after, strict=True) if a != b]
    assert len(changed) == 7
    assert all(a == (b[0], b[1], None, b[3]) for b, a in changed)


def test_swap_keeps_every_value_and_changes_who_has_it(sea: Bay) -> None:
    count, before, after = drifted(sea, ("swap",), rate=0.05)
    assert count == 1
    assert before != after
    for column in range(4):
        assert sorted(row[column] for row in after) == sorted(row[column] for row in before)


def test_stale_sets_a_date_back(sea: Bay) -> None:
    count, before, after = drifted(sea, ("stale",))
    changed = [(b, a) for b, a in zip(before, after, strict=True) if a != b]
    assert len(changed) == count == 7
    assert all(a[:3] == b[:3] and a[3].startswith("2017-01") for b, a in changed)


def test_duplicate_writes_rows_again_under_new_keys(sea: Bay) -> None:
    count, before, after = drifted(sea, ("duplicate",))
    assert len(after) == len(before) + count == 35
    known = {row[1:] for row in before}
    assert all(row[1:] in known for row in after)


def test_the_same_luck_gives_the_same_damage(sea: Bay) -> None:
    kinds: tuple[DriftKind, ...] = ("null", "swap", "stale", "duplicate")
    assert drifted(sea, kinds) == drifted(sea, kinds)
    assert drifted(sea, kinds, seed=8)[2] != drifted(sea, kinds)[2]


def test_no_rate_no_damage_and_the_whole_table_can_be_hit(sea: Bay) -> None:
    count, before, after = drifted(sea, ("null",), rate=0.0)
    assert (count, after) == (0, before)
    assert drifted(sea, ("null",), rate=1.0)[0] == 28


@on_a_server
async def test_a_table_that_cannot_drift_is_told(db: Database) -> None:
    with refused("fixture-failed"):
        await damage_table(db, "nothing", 0.1, ("null",), Random(1))
    await db.execute("CREATE TABLE loose (x int)")
    with pytest.raises(QueryFailed, match="no primary key"):
        await damage_table(db, "loose", 0.1, ("null",), Random(1))
