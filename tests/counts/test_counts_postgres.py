"""What a trial asks of its PostgreSQL before the agent starts, counted: logins, round trips and statements."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "integration"))  # the kit of real servers
from servers_kit import bay

from holdfast.model.world import ServiceSpec
from holdfast.world.services.postgres import session as pg_session
from holdfast.world.services.postgres.server import Postgres

KEPT = Path(__file__).parent / "kept.json"
ENV = {"POSTGRES_USER": "app", "POSTGRES_PASSWORD": "pw-pw-pw", "POSTGRES_DB": "shop"}
SEED = "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)"


def counted(folder: Path) -> dict[str, int]:
    with tempfile.TemporaryFile() as told_to:

        async def scene(db: Postgres) -> int:
            before = set(db._log._own_sessions)
            session = db._own_session._idle  # type: ignore[union-attr]
            assert session is not None
            session.pgconn.trace(told_to.fileno())
            await db.execute(SEED)
            await db.mark()
            await db.prepare("SELECT count(*) FROM t")
            session.pgconn.untrace()
            return len(set(db._log._own_sessions) - before)

        with bay(ServiceSpec("db", "postgres", env=ENV), folder) as opened:
            logins = opened.with_server(scene)
        told_to.seek(0)
        lines = told_to.read().splitlines()
    sent = [line for line in lines if b"\tF\t" in line and (b"\tQuery\t" in line or b"\tParse\t" in line)]
    trips = [line for line in lines if b"\tReadyForQuery\t" in line]
    return {"logins": logins, "round trips": len(trips), "statements": len(sent)}


def test_a_trial_asks_its_database_no_more_than_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pg_session, "IDLE_S", 30.0)
    found = counted(tmp_path)
    assert found["statements"] > 0
    kept = json.loads(KEPT.read_text())
    if "UPDATE_COUNTS" in os.environ:
        KEPT.write_text(json.dumps({**kept, "postgres": found}, indent=2, sort_keys=True) + "\n")
        return
    more = {what: n for what, n in found.items() if n > kept["postgres"][what] * 1.03}
    assert more == {}, f"kept are {kept['postgres']}. Find what was added, or raise it with the reason"
