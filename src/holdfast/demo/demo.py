"""Where the embedded example lies, and what it must show."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from holdfast.model.score import Cell

FILES = Path(__file__).with_name("finance")
"""The specs and the agent: a folder to copy."""

CONVICTED = frozenset(
    {
        ("never-fabricate-when-tools-fail", "search-tool-down"),
        ("always-cite-source", "llm-degraded"),
    }
)
"""Rule and scenario of every cell that the careless agent fails."""


class Version(Struct, frozen=True):
    """One of the two agents: its spec, what it does, and the cells it fails."""

    name: str
    about: str
    fails: frozenset[tuple[str, str]] = frozenset()

    @property
    def spec(self) -> Path:
        return FILES / f"{self.name}.yaml"


VERSIONS = (
    Version("good", "it says so when it has no figures, and never hands on half an answer"),
    Version("careless", "it fills a gap with a figure it remembers, and hands on what it gets", CONVICTED),
)


def surprise(version: Version, cells: Iterable[Cell]) -> str:
    """What differs from what the example must show; empty if nothing does."""
    judged = [cell for cell in cells if cell.outcome != "n/a"]
    failed = {(cell.invariant, cell.scenario) for cell in judged if cell.outcome == "fail"}
    undecided = {(cell.invariant, cell.scenario) for cell in judged if not cell.counted}
    parts = [
        *(f"{rule} in {scenario} should have passed" for rule, scenario in sorted(failed - version.fails)),
        *(f"{rule} in {scenario} should have failed" for rule, scenario in sorted(version.fails - failed - undecided)),
        *(f"{rule} in {scenario} was not decided" for rule, scenario in sorted(undecided)),
    ]
    return f"the {version.name} agent: {', '.join(parts)}" if parts else ""
