"""The causes that hunts found, by spec and rule: small files that a team can commit and share.

They are keyed by the spec's file and the rule, never by the agent: they matter most after the agent was edited.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UserError
from holdfast.folders import HUNTS, get_own_folder
from holdfast.model.codec import FormatNumber, create_decoder, digest, encode, format_too_new
from holdfast.model.scenario import Scenario
from holdfast.model.spec import Spec
from holdfast.store.lines import UNREADABLE
from holdfast.store.rundir import write_json


class KnownCause(Struct, frozen=True, omit_defaults=True):
    """A stored cause."""

    id: str
    code: str
    scenario: Scenario
    prompt: str = ""
    params: dict[str, Any] = {}
    fixed: bool = False
    """It no longer failed at the last attempt."""
    seal: str = ""
    """A digest of the other fields: an edited cause would be another experiment under the same name."""

    def sealed(self) -> KnownCause:
        """Return the cause with the seal for its current content."""
        return replace(self, seal=digest(encode(replace(self, seal=""))))


class CauseFile(Struct, frozen=True):
    """One rule's causes."""

    format: int
    rule: str
    causes: tuple[KnownCause, ...] = ()


FORMAT = 1
"""The format of these files."""


def get_causes_folder(spec: Spec) -> Path:
    """Return the folder with the causes of a spec: two files may contain contracts of the same name."""
    own = get_own_folder(spec.file)
    return (
        own / HUNTS / _build_file_name(spec.name if spec.file is None else _get_path_below(own.parent, Path(spec.file)))
    )


def _get_path_below(folder: Path, file: Path) -> str:
    """Return the file without its suffix, relative to the folder if it is there: the same on every machine."""
    plain = file.resolve().with_suffix("")
    root = folder.resolve()
    return str(plain.relative_to(root) if plain.is_relative_to(root) else plain)


def read_known_causes(spec: Spec) -> dict[str, tuple[KnownCause, ...]]:
    """Return the stored causes by rule, those of rules that are no longer in the spec included."""
    folder = get_causes_folder(spec)
    files = [_read(path) for path in sorted(folder.glob("*.json"))] if folder.is_dir() else []
    return {one.rule: one.causes for one in files}


def _read(path: Path) -> CauseFile:
    """Return the causes in a file; raise UserError if one was edited. Removing complete causes is allowed."""
    try:
        data = path.read_bytes()
        number = create_decoder(FormatNumber).decode(data).format
        if number != FORMAT:
            hint = "use the version of Holdfast that wrote it"
            raise UserError(
                format_too_new(f"the file of causes {path}", number, FORMAT), hint=hint, code="cause-unusable"
            )
        read = create_decoder(CauseFile).decode(data)
    except (OSError, *UNREADABLE) as broken:
        raise _unusable(f"{path} cannot be read: {broken}") from broken
    edited = ", ".join(one.id for one in read.causes if one != one.sealed())
    if edited:
        raise _unusable(f"{path}: {edited} was changed after a hunt wrote it")
    return read


def _unusable(why: str) -> UserError:
    hint = "restore the file, for example from git, or delete the cause or the file and hunt again"
    return UserError(why, hint=hint, code="cause-unusable")


def write_causes(
    spec: Spec, causes: Iterable[tuple[str, KnownCause]], fixed: Iterable[str] = (), retired: Iterable[str] = ()
) -> None:
    """Add causes, each with its rule; note which known ones no longer fail; remove those that are retired.

    Two hunts may do this concurrently.
    """
    new: dict[str, list[KnownCause]] = {}
    for rule, cause in causes:
        new.setdefault(rule, []).append(cause)
    healed, dropped = set(fixed), set(retired)
    own = {rule.id for rule in spec.invariants}
    found = {one.id for causes in new.values() for one in causes}
    if not new and not healed and not dropped:
        return
    folder = get_causes_folder(spec)
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder.parent.parent / ".gitignore"
    if (
        ignore.is_file() and ignore.read_text("utf-8") == "*\n"
    ):  # the text that Holdfast wrote: the causes may be in git
        ignore.write_text(f"*\n!/{HUNTS}/\n!/{HUNTS}/**\n", "utf-8")
    with _lock_folder(folder):
        causes_by_rule = read_known_causes(spec)
        for rule in {*new, *causes_by_rule}:
            merged = {one.id: replace(one, fixed=one.fixed or one.id in healed) for one in causes_by_rule.get(rule, ())}
            merged |= {one.id: one for one in new.get(rule, ())}
            ordered = tuple(
                merged[id].sealed() for id in sorted(merged.keys() - (dropped if rule in own else dropped | found))
            )
            write_json(folder / f"{_build_file_name(rule)}.json", CauseFile(FORMAT, rule, ordered), indent=2)


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock the folder itself: a lock file could be committed by accident."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _build_file_name(name: str) -> str:
    """Return a name that every file system accepts; a changed one keeps a digest of the original."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip(".-")[:80]
    return plain if plain == name else f"{plain}-{digest(name.encode())[:6]}"
