"""Finds the sessions to replay: in a file, in a folder, or in a spec and its sources."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from holdfast.errors import SpecError, UserError
from holdfast.folders import REPLAYS, get_own_folder
from holdfast.model.session import RecordedSession, SessionSource
from holdfast.model.spec import Spec
from holdfast.reading.file import read_file
from holdfast.reading.tree import parse
from holdfast.replay.foreign_trace import LeftOutTrace, SessionsFound
from holdfast.replay.langsmith import fetch_sessions
from holdfast.replay.session_file import build_file_name, write_sessions
from holdfast.spec.rules.replays import read_sessions

SUFFIXES = (".yaml", ".yml", ".json")
_MOST = 10_000


class SessionUnusable(UserError):
    """A session that cannot be replayed, or there is none."""

    default_code = "session-unusable"


class UnreadableSessions(SessionUnusable):
    """Several session files that cannot be used, each with its problems."""

    def __init__(self, files: tuple[SpecError, ...]) -> None:
        super().__init__(f"{len(files)} session files cannot be used")
        self.files = files


def read_path(path: Path) -> tuple[RecordedSession, ...]:
    """Return the sessions of a file, or of all session files in a folder; specs and contracts are skipped."""
    if not path.is_dir():
        return read_sessions(path)
    visible = (file for file in path.rglob("*") if not any(p.startswith(".") for p in file.relative_to(path).parts))
    files = sorted(file for file in visible if file.suffix in SUFFIXES and file.is_file())
    if not files:
        raise SessionUnusable(f"{path}: no session file in this folder", hint="a session file is .yaml, .yml or .json")
    if len(files) > _MOST:
        raise SessionUnusable(
            f"{path}: more than {_MOST:,} files", hint="name a folder that contains only session files"
        )
    return tuple(_read_every((file, os.path.relpath(file)) for file in files if not _is_spec_or_contract(file)))


def _is_spec_or_contract(file: Path) -> bool:
    """Return whether the file is a spec or a contract."""
    root, _ = parse(read_file(file).text)
    if root is None or root.kind != "map" or root.has("id") or root.has("input"):
        return False
    return root.has("agent") or (root.has("contract") and root.get("contract").kind == "map")


def list_sessions(spec: Spec, environ: Mapping[str, str], now: datetime) -> SessionsFound:
    """Return the sessions of a spec, including those of sources with `auto_import`."""
    if spec.replays is None:
        raise SessionUnusable(
            f"{spec.path} has no replays section, so there is no session to replay",
            hint="name a session file or folder, or turn a failed trial into a session: holdfast promote TRIAL",
        )
    root = Path(spec.path).parent
    entries = spec.replays.sessions
    sessions = _read_every(one if isinstance(one, RecordedSession) else (root / one, "") for one in entries)
    left_out: list[LeftOutTrace] = []
    for source in spec.replays.sources:
        if source.auto_import:
            fresh = refresh_source(source, get_own_folder(spec.file) / REPLAYS, environ, now)
            sessions += fresh.sessions
            left_out += fresh.left_out
    return SessionsFound(tuple(sessions), tuple(left_out))


def refresh_source(source: SessionSource, cache: Path, environ: Mapping[str, str], now: datetime) -> SessionsFound:
    """Fetch the sessions of a source and replace its cache with them."""
    folder = cache / build_file_name(f"langsmith-{source.run or source.project}").removesuffix(".yaml")
    fresh = fetch_sessions(source, environ, now)
    written = write_sessions(fresh.sessions, folder, force=True)
    for stale in set(folder.glob("*.yaml")) - set(written.all_files):
        stale.unlink()
    return fresh


def _read_every(entries: Iterable[RecordedSession | tuple[Path, str]]) -> list[RecordedSession]:
    """Return the sessions in order: each is one, or a file with its name; raise for all files that cannot be used."""
    sessions: list[RecordedSession] = []
    broken: list[SpecError] = []
    for entry in entries:
        try:
            sessions += [entry] if isinstance(entry, RecordedSession) else read_sessions(*entry)
        except SpecError as wrong:
            broken.append(wrong)
    if broken:
        raise broken[0] if len(broken) == 1 else UnreadableSessions(tuple(broken))
    return sessions
