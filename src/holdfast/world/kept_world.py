"""Keeps the world of a trial as a folder, for inspection: its workspace, logs and the content of its services.

workspace/, home/    as the agent left them; secrets are masked
services/NAME.json   a database's tables, a mock's requests
services/NAME.dump   the complete content of a server, to start another one with
audit.jsonl, trace.jsonl
kept.json            how to open it again: the environment without secrets, and what the agent could see
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import HoldfastError, UserError
from holdfast.model.codec import create_decoder, encode
from holdfast.model.observation import Observation
from holdfast.model.trial import Trial
from holdfast.model.world import EXTERNAL
from holdfast.protocols.sandbox import Sandbox
from holdfast.protocols.service import Database, DumpableService, Mock, Rows, Service
from holdfast.secrets.hidden import HiddenValues, mask_dump, mask_files
from holdfast.service_kinds import get_protocol_traits
from holdfast.sqltext.lexer import Dialect, quote_name
from holdfast.world.sandbox.workspace import copy_tree, remove

ABOUT = "kept.json"
HOME = "home"
"""The folder of a kept world for files that its programs stored for themselves."""
MOST_BYTES = 1 << 30
"""A larger workspace or home is not copied."""
_ROWS = 1_000
_QUERY_S = 10.0
_TABLES = """SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'
AND table_schema NOT IN ('pg_catalog', 'information_schema', 'mysql', 'performance_schema', 'sys') ORDER BY 1, 2"""


class KeptWorld(Struct, frozen=True):
    """The description of a kept world."""

    trial: str
    spec: str
    """The folder of its spec."""
    environ: dict[str, str]
    visible: dict[str, str]
    notes: tuple[str, ...] = ()
    """What is missing, and why."""
    service_notes: dict[str, str] = {}
    """What was not kept, and why, by service."""
    run: str = ""
    """The directory of its run."""
    links: dict[str, str] = {}
    """Links to visible paths."""


class WorldKeeper:
    """Decides which worlds are kept, where, and how secrets are removed from them."""

    def __init__(
        self,
        folder: Path,
        mask: Callable[[str], str],
        run: Path | None = None,
        wants: Callable[[Trial, Observation], bool] = lambda trial, observation: True,
        values: Collection[str] = (),
    ) -> None:
        """`wants` decides about a trial that has ended, while its world still exists.

        `mask` removes the given values and the secrets of a world from a text.
        """
        self.folder = folder
        self.wants = wants
        self._mask = mask
        self._values = values
        self._run = "" if run is None else str(run.resolve())

    async def keep(
        self,
        world: KeptWorld,
        sandbox: Sandbox | None,
        services: Mapping[str, Service],
        logs: Iterable[Path],
        secrets: Collection[str],
    ) -> None:
        """Copy everything available into a folder for the trial; raise OSError if there is no space for it."""
        target = self.folder / world.trial
        remove(target)
        self.folder.mkdir(parents=True, exist_ok=True)
        target.mkdir(mode=0o700)
        (target / "services").mkdir()
        notes, of_services = list(world.notes), dict(world.service_notes)
        # Secrets are removed from copies, never from the world itself: checks have read that already, but services may
        # still run.
        hidden = HiddenValues({*self._values, *secrets}, self._mask)
        if sandbox is None:
            notes.append("there is no workspace: the sandbox never opened")
        else:
            for name, view in (("workspace", sandbox.view()), (HOME, sandbox.home_view())):
                notes += await asyncio.to_thread(_copy_folder, view, target / name, hidden)
        for log in logs:
            if log.exists():
                (target / log.name).write_text(hidden.mask_text(log.read_text(encoding="utf-8", errors="replace")))
        for name, service in services.items():
            content, why = await _read_content(service)
            if content is not None:
                _write(target / "services" / f"{name}.json", content, hidden)
            why = await _dump(service, get_dump_path(target, name), hidden) or why
            if why:
                of_services[name] = why
        description = replace(world, notes=tuple(notes), service_notes=of_services, run=self._run)
        _write(target / ABOUT, description, hidden)


async def _dump(service: Service, path: Path, hidden: HiddenValues) -> str:
    """Write the content of a service; return why it is missing or incomplete."""
    if not isinstance(service, DumpableService):
        return ""
    path.touch(mode=0o600)
    try:
        missing = await service.dump(path)
        await asyncio.to_thread(mask_dump, path, hidden, text=bool(get_protocol_traits(service.spec).wire))
        return missing
    except (HoldfastError, OSError, ValueError) as refused:
        path.unlink(missing_ok=True)
        return f"its content could not be stored: {' '.join(str(refused).split())}"


def _write(path: Path, value: Any, hidden: HiddenValues) -> None:
    path.write_text(hidden.mask_text(encode(value).decode()) + "\n")


def get_dump_path(folder: Path, service: str) -> Path:
    """Return the file with the content of a service in a kept world."""
    return folder / "services" / f"{service}.dump"


def read_kept_world(folder: Path) -> KeptWorld:
    """Return the description of a kept world; raise UserError if the folder is not one."""
    try:
        return create_decoder(KeptWorld).decode((folder / ABOUT).read_bytes())
    except (OSError, ValueError) as broken:
        raise UserError(f"{folder} is not a stored sandbox: {broken}", code="kept-world-invalid") from broken


def list_kept_worlds(folder: Path) -> list[Path]:
    """Return every kept world in a folder, oldest first."""
    paths = [path for path in folder.glob("*") if (path / ABOUT).is_file()] if folder.is_dir() else []
    return sorted(paths, key=lambda path: (path / ABOUT).stat().st_mtime)


def clear_kept_worlds(folder: Path, older_than_s: float, now: float) -> list[Path]:
    """Remove older kept worlds, and return them."""
    old = [path for path in list_kept_worlds(folder) if now - (path / ABOUT).stat().st_mtime >= older_than_s]
    for path in old:
        remove(path)
    return [path for path in old if not path.exists()]


def remove_secrets(environ: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables that contain a secret."""
    return {name: text for name, text in environ.items() if not any(value in text for value in secrets.values())}


def _copy_folder(view: Path, target: Path, hidden: HiddenValues) -> list[str]:
    """Copy the workspace or the home, without secrets; return notes about it."""
    try:
        size = 0
        for at, _, names in os.walk(view):
            for name in names:
                with suppress(OSError):
                    size += os.lstat(os.path.join(at, name)).st_size
        if size > MOST_BYTES:
            return [f"the {target.name} is not kept: it has {size:,} bytes, but the maximum is {MOST_BYTES:,}"]
        notes = []
        try:
            copy_tree(view, target)
        except shutil.Error as some:  # copytree has copied the other files
            notes = [f"files of the {target.name} that could not be copied: {len(some.args[0])}"]
        return [*notes, *mask_files(target, hidden)]
    except OSError as refused:
        remove(target)
        return [f"the {target.name} could not be copied: {refused}"]


async def _read_content(service: Service) -> tuple[Any, str]:
    """Return the content of a service, and why it is incomplete."""
    try:
        if isinstance(service, Mock):
            return {"requests": list(service.requests), "dropped": service.dropped}, ""
        if isinstance(service, Database):
            return await read_tables(service, _ROWS), ""
    except (HoldfastError, TimeoutError) as refused:
        return None, f"its content could not be read: {refused}"
    if isinstance(service, DumpableService) or service.spec.kind == EXTERNAL:
        return None, ""
    return None, "its content is not stored: it is neither a database nor a mock"


async def read_tables(database: Database, keep: int) -> dict[str, Rows]:
    """Return the first rows of every table, up to `keep`."""
    tables = {}
    dialect: Dialect = get_protocol_traits(database.spec).wire or "postgres"
    for schema, table in (await database.query(_TABLES, timeout_s=_QUERY_S, keep=keep)).rows:
        name = f"{quote_name(schema, dialect)}.{quote_name(table, dialect)}"
        tables[f"{schema}.{table}"] = await database.query(f"SELECT * FROM {name}", timeout_s=_QUERY_S, keep=keep)  # noqa: S608
    return tables
