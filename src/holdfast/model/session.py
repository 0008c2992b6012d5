"""A recorded session: the prompts of a production session, the tools' answers, and where sessions come from."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from holdfast.model.scenario import Scenario
from holdfast.model.task import DialogueMessage, RecordedFiring, RecordedResponse


class RecordedSession(Struct, frozen=True, omit_defaults=True):
    """One session to replay, from a file or the spec."""

    id: str
    turns: tuple[str, ...]
    """The prompts: `input`."""
    name: str = ""
    source: str = "manual"
    captured_at: str = ""
    context: tuple[DialogueMessage, ...] = ()
    """The earlier turns."""
    responses: tuple[RecordedResponse, ...] = ()
    expected_failure: str = ""
    """What went wrong in production. It is shown and decides nothing."""
    failed_rules: tuple[str, ...] = ()
    """For a trial that became a session: the rules that it failed. Without them, the session would guard nothing."""
    contract: str = ""
    """A name or a path; empty: the spec's own contract."""
    scenario: Scenario | None = None
    """The faults that act on it; None if there are none."""
    seed: int | None = None
    """For a trial that became a session: the seed of all its random draws."""
    fired: tuple[RecordedFiring, ...] | None = None
    """For such a trial: the calls on which its faults with a probability fired. None: the seed decides."""
    file: str = ""
    """The file it was read from; empty if it is in the spec."""
    line: int = 0

    @property
    def has_failures(self) -> bool:
        """Whether a tool failed in it."""
        return any(response.failed for response in self.responses)


class SessionSource(Struct, frozen=True, omit_defaults=True):
    """The source of imported sessions: a LangSmith project, or one run."""

    project: str = ""
    run: str = ""
    status: Literal["error", "warning", "all"] = "error"
    date_range: str = "last_7_days"
    min_latency_ms: float = 0.0
    auto_import: bool = False
    limit: int = 100
    """The most traces to import."""

    @property
    def words(self) -> str:
        return f"LangSmith run {self.run}" if self.run else f"LangSmith project {self.project}"


class ReplaySpec(Struct, frozen=True, omit_defaults=True):
    """The `replays:` section: sessions or files of sessions, in order, and sources of more."""

    sessions: tuple[RecordedSession | str, ...] = ()
    sources: tuple[SessionSource, ...] = ()
