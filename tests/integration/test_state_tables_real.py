"""Tables told apart by their content, on real servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers_kit import Bay, bay

from holdfast.checks.state.databases import fingerprints
from holdfast.checks.state.db_unchanged_except import DbUnchangedExcept
from holdfast.checks.state.sql import Sql
from holdfast.errors import QueryFailed
from holdfast.model.observation import Observation
from holdfast.model.world import ServiceSpec
from world_kit import FakeWorld

SPECS = {
    "postgres": ServiceSpec("db", "postgres", image="postgres:16", env={"POSTGRES_PASSWORD": "s3cret"}),
    "mysql": ServiceSpec("db", "mysql", image="mysql:8", env={"MYSQL_ROOT_PASSWORD": "r00t", "MYSQL_DATABASE": "shop"}),
}
SEED = """
CREATE TABLE customers (id int PRIMARY KEY, email varchar(50), paid decimal(8, 2));
INSERT INTO customers VALUES (1, 'a@x', 1.10), (2, 'b@x', NULL), (3, 'c@x', 3);
CREATE TABLE orders (id int, note varchar(20));
CREATE TABLE spare (id int);
"""


@pytest.fixture(scope="module", params=sorted(SPECS))
def sea(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bay]:
    with bay(SPECS[request.param], tmp_path_factory.mktemp(request.param)) as opened:
        yield opened


def changed(sea: Bay, *statements: str) -> set[str]:
    """The tables, by bare name, whose marks differ after these statements."""

    async def scene(db: Any) -> set[str]:
        await db.execute(SEED)
        before = await fingerprints(db, timeout_s=10)
        for statement in statements:
            await db.execute(statement)
        after = await fingerprints(db, timeout_s=10)
        names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        return {name.rpartition(".")[2] for name in names}

    return sea.with_server(scene)


@pytest.mark.parametrize(
    ("statements", "tables"),
    [
        ((), set()),
        (("UPDATE customers SET email = 'z' WHERE id = 2",), {"customers"}),
        (("UPDATE customers SET email = 'z'", "UPDATE customers SET email = 'y'"), {"customers"}),
        (("INSERT INTO orders VALUES (1, 'x')",), {"orders"}),
        (("INSERT INTO orders VALUES (1, 'x')", "DELETE FROM orders"), set()),
        (("DELETE FROM customers WHERE id = 1", "INSERT INTO customers VALUES (1, 'a@x', 1.10)"), set()),
        (("DROP TABLE spare", "CREATE TABLE extra (id int)"), {"spare", "extra"}),
        (("ALTER TABLE spare ADD COLUMN more int",), {"spare"}),
    ],
)
def test_marks_change_with_what_is_in_a_table_and_with_nothing_else(
    sea: Bay, statements: tuple[str, ...], tables: set[str]
) -> None:
    assert changed(sea, *statements) == tables


def test_the_check_convicts_a_write_elsewhere(sea: Bay, tmp_path: Path) -> None:
    from world_kit import shown

    async def scene(db: Any) -> list[bool | None]:
        await db.execute(SEED)
        check, world = DbUnchangedExcept("db", ("orders",)), FakeWorld(tmp_path, db)
        await check.foresee(world)
        await db.execute("INSERT INTO orders VALUES (1, 'x')")
        kept = check.decide(shown(await check.gather(world, Observation("t")))).passed
        await db.execute("DELETE FROM customers")
        broken = check.decide(shown(await check.gather(world, Observation("t")))).passed
        return [kept, broken]

    assert sea.with_server(scene) == [True, False]


def test_a_bare_name_is_no_table_of_another_schema(sea: Bay, tmp_path: Path) -> None:
    from world_kit import shown

    async def scene(db: Any) -> list[bool | None]:
        await db.execute("CREATE SCHEMA other; CREATE TABLE other.orders (id int);" + SEED)
        world = FakeWorld(tmp_path, db)
        checks = [DbUnchangedExcept("db", (allowed,)) for allowed in ("orders", "other.orders", "*.orders")]
        for check in checks:
            await check.foresee(world)
        await db.execute("INSERT INTO other.orders VALUES (1)")
        found = [check.decide(shown(await check.gather(world, Observation("t")))).passed for check in checks]
        await db.execute("DROP SCHEMA other" + (" CASCADE" if db.spec.kind == "postgres" else ""))
        return found

    assert sea.with_server(scene) == [False, True, True]


def test_a_query_of_the_rule_on_a_real_database(sea: Bay, tmp_path: Path) -> None:
    from world_kit import shown

    async def scene(db: Any) -> list[bool | None]:
        await db.execute(SEED)
        world = FakeWorld(tmp_path, db)
        found = []
        for query, expected in (
            ("SELECT count(*) FROM customers", {"equals": 3}),
            ("SELECT paid FROM customers WHERE id = 1", {"equals": 1.1}),
            ("SELECT paid FROM customers WHERE id = 2", {"equals": None}),
            ("SELECT avg(id) / 3 FROM customers", {"at_least": 0.66, "at_most": 0.67}),
            ("SELECT id = 1 FROM customers WHERE id = 1", {"equals": True}),
            ("SELECT email FROM customers ORDER BY id", {"equals": "a@x", "rows": 3}),
        ):
            check = Sql("db", query, **expected)
            await check.foresee(world)
            found.append(check.decide(shown(await check.gather(world, Observation("t")))).passed)
        with pytest.raises(QueryFailed):
            await Sql("db", "SELECT nothing FROM nowhere", equals=1).foresee(world)
        await db.execute("DROP TABLE customers")
        gone = Sql("db", "SELECT count(*) FROM customers", equals=3)
        found.append(gone.decide(shown(await gone.gather(world, Observation("t")))).passed)
        return found

    assert sea.with_server(scene) == [True] * 6 + [False]
