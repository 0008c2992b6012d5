"""What is done in a world before the agent comes: data into its databases, commands of the setup."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import TypeAlias

from holdfast.errors import HarnessError, QueryFailed
from holdfast.model.codec import canonical, digest
from holdfast.model.trial import Trial
from holdfast.model.world import Fixture
from holdfast.protocols.sandbox import Sandbox
from holdfast.protocols.service import Database

SETUP_S = 600.0
_SHELL = "/bin/sh"
Begin: TypeAlias = Callable[[str], None]
"""Is told what is begun, by its place in the spec."""


async def fill(
    fixtures: Iterable[Fixture], databases: Mapping[str, Database], root: Path, trial: Trial, begin: Begin
) -> None:
    """Fixtures of the databases, in order; HarnessError names the one that failed."""
    for number, fixture in enumerate(fixtures):
        if fixture.type not in ("sql", "drift"):
            continue
        database = databases.get(fixture.service or "")
        if database is None:
            raise HarnessError(f"fixtures[{number}] needs a database, and {fixture.service} is none")
        begin(f"fixtures[{number}] ({fixture.type})")
        try:
            await _into(database, fixture, root, trial)
        except QueryFailed as refused:
            why = f"fixtures[{number}] ({fixture.type}) failed in {fixture.service}: {refused}"
            raise HarnessError(why) from refused


async def _into(database: Database, fixture: Fixture, root: Path, trial: Trial) -> None:
    if fixture.type == "drift":
        from holdfast.world.services.drift import drift

        rng = Random(digest(canonical([trial.seed, trial.replica, fixture.table])))
        await drift(database, fixture.table or "", fixture.rate, fixture.kinds, rng)
        return
    sql = fixture.sql
    if sql is None:
        sql = (root / (fixture.file or "")).read_text(encoding="utf-8")
    await database.execute(sql)


async def set_up(commands: Iterable[str], sandbox: Sandbox, environ: Mapping[str, str], begin: Begin) -> None:
    """Runs each command to its end; HarnessError says what the one that failed said."""
    for number, command in enumerate(commands):
        begin(f"setup.commands[{number}]")
        ran = await sandbox.run([_SHELL, "-c", command], environ, timeout_s=SETUP_S)
        if ran.exit_code != 0:
            said = (ran.stderr or ran.stdout).decode("utf-8", "replace").strip()[-1_000:]
            how = "took too long" if ran.timed_out else f"exited with {ran.exit_code}"
            raise HarnessError(f"setup.commands[{number}] {how}: {said}")
