"""A MySQL image as a service: how its database is read, with a real server in the container's place."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from servers_kit import bay, told

from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import Database
from holdfast.world.services.drivers import ContainedSql
from holdfast.world.services.kinds import MysqlKind

ENV = {"MYSQL_ROOT_PASSWORD": "r00t-r00t", "MYSQL_DATABASE": "shop", "MYSQL_USER": "app", "MYSQL_PASSWORD": "pw-pw-pw"}
SPEC = ServiceSpec("db", "mysql", "mysql:8", ENV)


def test_its_database_is_read_as_root_and_its_writes_by_counters(tmp_path: Path) -> None:
    async def scene(server: Any) -> None:
        running: Any = SimpleNamespace(spec=SPEC, path=lambda port: server.upstream, alive=True)
        service = await MysqlKind().contained(running, ("as an image",))
        assert isinstance(service, ContainedSql)
        assert isinstance(service, Database)
        assert service.variables == {"URL": "mysql://app:pw-pw-pw@{host}:{port}/shop"}
        assert service.notes[0] == "as an image"
        await service.execute("create table t (n int); insert into t values (1)")
        await service.mark()
        await service.execute("insert into t values (2), (3)")
        rows = await service.query("select count(*) from t", timeout_s=10)
        assert rows.rows == ((3,),)
        assert [(table, count) for table, _, count in told(await service.writes())] == [("t", 2)]

    with bay(SPEC, tmp_path) as site_planes:
        site_planes.with_server(scene)
