"""`files_changed_only`: only these files may have changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import Annotated, ClassVar

from msgspec import Struct

from holdfast.checks.state.recorded import SHOWN, build_evidence, read_evidence
from holdfast.checks.wording import shorten
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.check import Exhibit
from holdfast.protocols.sandbox import FileChange
from holdfast.protocols.world import World
from holdfast.reading.fields import about
from holdfast.reading.file import find_path_problem, is_covered
from holdfast.reading.words import format_plural

CHANGES_KEPT = 20_000
_LINE = 100


class Changes(Struct, frozen=True, omit_defaults=True):
    """The agent's changes to the workspace since the snapshot."""

    changes: tuple[FileChange, ...] = ()
    cut: bool = False


@dataclass(frozen=True)
class FilesChangedOnly:
    """Only these paths of the workspace were created, changed or deleted."""

    paths: Annotated[
        tuple[str, ...], about("Files, folders or globs that may change.", examples=[["src/", "*.md"]])
    ] = ()
    ignore: Annotated[
        tuple[str, ...],
        about(
            "Files, folders or globs to ignore at any depth. Your list replaces the default; the verdict lists them.",
            examples=[["dist"]],
        ),
    ] = (".pytest_cache", "__pycache__", "node_modules/.cache")

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive", reads="state", see=("invariants.file_absent", "invariants.db_unchanged_except")
    )
    codes: ClassVar[Mapping[str, str]] = {
        "files-changed": "Files changed that must not change.",
        "files-unchanged": "No other file changed.",
        "files-unknown": "There were more changes than are kept.",
    }

    async def gather(self, world: World, observation: Observation) -> Evidence:
        changes = tuple(islice(world.changes(), CHANGES_KEPT + 1))
        return build_evidence(["changes"], Changes(changes[:CHANGES_KEPT], len(changes) > CHANGES_KEPT))

    def decide(self, exhibit: Exhibit) -> Finding:
        recorded_changes = read_evidence(exhibit, ["changes"], Changes)
        wrong, ignored = list[str](), list[str]()
        for one in recorded_changes.changes:
            if not is_covered(self.paths, one.path):
                (ignored if self._is_ignored(one.path) else wrong).append(f"{one.op} {one.path}")
        details = {name: some[:SHOWN] for name, some in (("changes", wrong), ("ignored", ignored)) if some}
        aside = f"; ignored: {_format_changes(ignored)}" if ignored else ""
        if wrong:
            return Finding(
                False, _format_changes(wrong) + aside, "files-changed", tuple(wrong[:SHOWN]), details=details
            )
        if recorded_changes.cut:
            why = f"only the first {CHANGES_KEPT} changes are known, and all of these are allowed"
            return Finding(None, why, "files-unknown")
        changed = len(recorded_changes.changes) - len(ignored)
        many = f"{format_plural(changed, 'file')} changed, all of them allowed" if changed else "no file changed"
        return Finding(True, f"{many}{aside}", "files-unchanged", details=details)

    def _is_ignored(self, path: str) -> bool:
        parts = PurePosixPath(path).parts
        return any(is_covered(self.ignore, "/".join(parts[n:])) for n in range(len(parts)))

    def problems(self) -> Iterable[tuple[str, str]]:
        for name, paths in (("paths", self.paths), ("ignore", self.ignore)):
            for n, path in enumerate(paths):
                for _, message in find_path_problem(path):
                    yield f"{name}[{n}]", message


def _format_changes(changes: list[str]) -> str:
    """Return the first changes with their complete names, as many as fit in a line, and how many more there are."""
    count = next((n for n in (3, 2) if len(", ".join(changes[:n])) <= _LINE), 1)
    more = f" (and {len(changes) - count} more)" if len(changes) > count else ""
    # Only a single name that is longer than a line is cut.
    return shorten(", ".join(changes[:count]), _LINE) + more
