"""`files_changed_only`: only these files may have changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, ClassVar, Literal

from msgspec import Struct

from holdfast.checks.state.recorded import SHOWN, record, recorded
from holdfast.checks.wording import shorten
from holdfast.model.observation import Observation
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols import Exhibit, FileChange, World
from holdfast.reading.fields import about
from holdfast.reading.inside import covers, outside

CHANGES_KEPT = 20_000


class Changes(Struct, frozen=True, omit_defaults=True):
    """How the agent changed the workspace since the snapshot."""

    changes: tuple[FileChange, ...] = ()
    cut: bool = False


@dataclass(frozen=True)
class FilesChangedOnly:
    """Nothing in the workspace was made, changed or deleted but at these paths."""

    paths: Annotated[
        tuple[str, ...], about("Files, folders or globs that may change; none: [].", examples=[["src/", "*.md"]])
    ] = ()

    polarity: ClassVar[Literal["positive", "negative"]] = "positive"
    reads: ClassVar[Literal["state"]] = "state"

    async def gather(self, world: World, seen: Observation) -> Evidence:
        kept = tuple(islice(world.changes(), CHANGES_KEPT + 1))
        return record(["changes"], Changes(kept[:CHANGES_KEPT], len(kept) > CHANGES_KEPT))

    def decide(self, exhibit: Exhibit) -> Finding:
        found = recorded(exhibit, ["changes"], Changes)
        wrong = [f"{one.op} {one.path}" for one in found.changes if not covers(self.paths, one.path)]
        if wrong:
            more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
            return Finding(False, shorten(", ".join(wrong[:3]), 180) + more, details={"changes": wrong[:SHOWN]})
        if found.cut:
            return Finding(None, f"only the first {CHANGES_KEPT} changes are known, and all of these are allowed")
        return Finding(True, f"changed, of what may change: {len(found.changes)}")

    def problems(self) -> Iterable[tuple[str, str]]:
        for n, path in enumerate(self.paths):
            for _, message in outside(path):
                yield f"paths[{n}]", message
