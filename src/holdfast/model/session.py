"""A recorded session: what was asked in production, what the tools answered, and where sessions come from."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from holdfast.model.scenario import Scenario
from holdfast.model.task import DialogueMessage, RecordedFiring, RecordedResponse


class RecordedSession(Struct, frozen=True, omit_defaults=True):
    """One session to replay, as its file or the spec has it."""

    id: str
    turns: tuple[str, ...]
    """What was asked: `input`."""
    name: str = ""
    source: str = "manual"
    captured_at: str = ""
    context: tuple[DialogueMessage, ...] = ()
    """The earlier turns."""
    responses: tuple[RecordedResponse, ...] = ()
    expected_failure: str = ""
    """What went wrong then. It is shown and decides nothing."""
    contract: str = ""
    """A name or a path; empty: the spec's own."""
    scenario: Scenario | None = None
    """The faults that act on it; None: there are none."""
    seed: int | None = None
    """Of a trial that became a session: what all its draws come from."""
    fired: tuple[RecordedFiring, ...] | None = None
    """Of such a trial: on which calls its faults with a probability fired. None: the seed decides."""
    file: str = ""
    """Where it was read; empty: in the spec."""
    line: int = 0

    @property
    def has_failures(self) -> bool:
        """A tool failed in it."""
        return any(one.failed for one in self.responses)


class SessionSource(Struct, frozen=True, omit_defaults=True):
    """Where sessions are imported from: a LangSmith project, or one run."""

    project: str = ""
    run: str = ""
    status: Literal["error", "warning", "all"] = "error"
    date_range: str = "last_7_days"
    min_latency_ms: float = 0.0
    auto_import: bool = False
    limit: int = 100
    """The most traces that are taken."""

    @property
    def words(self) -> str:
        return f"LangSmith run {self.run}" if self.run else f"LangSmith project {self.project}"


class ReplaySpec(Struct, frozen=True, omit_defaults=True):
    """The `replays:` section: sessions, or the files that they are in, in their order; and sources of more."""

    sessions: tuple[RecordedSession | str, ...] = ()
    sources: tuple[SessionSource, ...] = ()
