"""The embedded example and the verdicts it must produce."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from holdfast.model.run import Overall
from holdfast.model.score import Cell
from holdfast.model.spec import Part

FILES = Path(__file__).with_name("finance")
"""The specs and the agent: a folder to copy."""

CONVICTED = frozenset(
    {
        ("never-fabricate-when-tools-fail", "search-tool-down"),
        ("always-cite-source", "llm-degraded"),
    }
)
"""Rule and scenario of every cell that the careless agent fails."""

SENT_TWICE = frozenset({("one_mail", "reply-lost")})
"""Rule and scenario of the cell in which the careless agent sends a mail twice."""

SCORED: tuple[Part, ...] = ("contract", "mutation", "chaos", "replay")
"""The parts of the overall score: the good agent passes all of them, the careless one fails all."""


class Version(Struct, frozen=True):
    """One of the two agents: its spec, what it does, and the cells it fails."""

    name: str
    about: str
    mailing: str
    fails: frozenset[tuple[str, str]] = frozenset()
    fails_mail: frozenset[tuple[str, str]] = frozenset()

    @property
    def spec(self) -> Path:
        return FILES / f"{self.name}.yaml"

    @property
    def mail_spec(self) -> Path:
        return FILES / f"mail-{self.name}.yaml"


GOOD = Version(
    "good",
    "it says so when it has no figures, and never returns a partial answer",
    "it asks whether the mail was sent before it sends again",
)
CARELESS = Version(
    "careless",
    "it fills gaps with figures it remembers, and returns whatever it gets",
    "it assumes that a lost reply means a lost mail",
    CONVICTED,
    SENT_TWICE,
)
VERSIONS = (GOOD, CARELESS)


def find_surprise(version: Version, cells: Iterable[Cell]) -> str:
    """Return how the contract's cells differ from the expected ones; empty if they do not."""
    return _describe_surprise(version.name, version.fails, cells)


def find_mail_surprise(version: Version, cells: Iterable[Cell]) -> str:
    """Return how the cells of the mail spec differ from the expected ones; empty if they do not."""
    return _describe_surprise(f"{version.name} mail", version.fails_mail, cells)


def find_overall_surprise(version: Version, overall: Overall) -> str:
    """Return how the parts of `ci` differ from the expected results; empty if they do not."""
    wanted = 1 if version.fails else 0
    ran = {part.part: part for part in overall.parts if part.ran}
    wrong = [
        f"{part} should have {'failed' if wanted else 'passed'}" if part in ran else f"{part} was not run"
        for part in SCORED
        if part not in ran or ran[part].exit_code != wanted
    ]
    return f"the {version.name} agent in ci: {', '.join(wrong)}" if wrong else ""


def _describe_surprise(name: str, fails: frozenset[tuple[str, str]], cells: Iterable[Cell]) -> str:
    judged = [cell for cell in cells if cell.outcome != "n/a"]
    failed = {(cell.invariant, cell.scenario) for cell in judged if cell.outcome == "fail"}
    undecided = {(cell.invariant, cell.scenario) for cell in judged if not cell.is_counted}
    parts = [
        *(f"{rule} in {scenario} should have passed" for rule, scenario in sorted(failed - fails)),
        *(f"{rule} in {scenario} should have failed" for rule, scenario in sorted(fails - failed - undecided)),
        *(f"{rule} in {scenario} was not decided" for rule, scenario in sorted(undecided)),
    ]
    return f"the {name} agent: {', '.join(parts)}" if parts else ""
