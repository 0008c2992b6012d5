"""A MySQL service whose env names no database: it has none, and works with names that say where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from servers_kit import bay

from holdfast.checks.state.db_unchanged_except import DbUnchangedExcept
from holdfast.errors import QueryFailed
from holdfast.model.observation import Observation
from holdfast.model.world import ServiceSpec
from refused import refused
from world_kit import FakeWorld, shown

SPEC = ServiceSpec("db", "mysql", image="mysql:8", env={"MYSQL_ROOT_PASSWORD": "r00t"})


def test_it_has_no_database_until_one_is_made(tmp_path: Path) -> None:
    async def scene(db: Any) -> list[Any]:
        with refused("query-failed"):
            await db.execute("CREATE TABLE customers (id int)")
        await db.execute("CREATE DATABASE app; USE app; CREATE TABLE customers (id int);")
        with pytest.raises(QueryFailed, match=r"or write app\.table"):
            await db.prepare("SELECT count(*) FROM customers")
        counted = await db.query("SELECT count(*) FROM app.customers", timeout_s=10)
        checks = [DbUnchangedExcept("db", (allowed,)) for allowed in ("customers", "app.customers")]
        world = FakeWorld(tmp_path, db)
        for check in checks:
            await check.foresee(world)
        await db.execute("INSERT INTO app.customers VALUES (1)")
        judged = [check.decide(shown(await check.gather(world, Observation("t")))).passed for check in checks]
        return [counted.rows[0][0], db.variables["URL"].endswith("/"), *judged]

    with bay(SPEC, tmp_path) as sea:
        assert sea.with_server(scene) == [0, True, False, True]
