"""Sessions to the spec that replays them, and what the user should know of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.errors import NothingProven
from holdfast.model.session import RecordedSession
from holdfast.model.spec import Spec
from holdfast.reading.words import near
from holdfast.replay.derived_spec import replay_spec, unjudged
from holdfast.replay.session_list import ListedSessions


def replayed(spec: Spec, listed: ListedSessions, *, live: bool) -> tuple[Spec, tuple[str, ...]]:
    """The derived spec with its warnings. NothingProven if no session could decide anything."""
    notes = [f"{one.name} was left out: {one.why}" for one in listed.left_out]
    if not listed.sessions:
        more = f" ({'; '.join(notes)})" if notes else ""
        raise NothingProven(f"there is no session to replay: nothing is proven{more}")
    derived = replay_spec(spec, listed.sessions, live=live)
    idle = unjudged(derived, listed.sessions)
    if not derived.tasks:
        raise NothingProven(f"no rule judges {_named(idle)}: nothing is proven; {_WHY}")
    notes += [f"session {id} decides nothing: {_WHY}" for id in idle]
    return derived, (*notes, *_unknown_tools(spec, listed.sessions))


_WHY = "its contract has no rule whose `when` is met, or only rules with probes of their own"


def _named(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
    return f"session{'' if len(ids) == 1 else 's'} {shown}"


def _unknown_tools(spec: Spec, sessions: Sequence[RecordedSession]) -> Iterator[str]:
    """Recorded tools that the agent no longer declares; where its tools are not declared nobody can tell."""
    agent = spec.agent
    if not agent.tools or agent.tool_registry or agent.mcp_config is not None:
        return
    known = [ref.name or ref.path.rpartition(":")[2].rpartition(".")[2] for ref in agent.tools]
    for session in sessions:
        for tool in dict.fromkeys(one.tool for one in session.responses):
            if tool in known or any(sign in tool for sign in "*?[/"):
                continue
            close = near(tool, known)
            meant = f": did you mean {close}?" if close else ""
            yield f"session {session.id} has answers of {tool}, and no declared tool is called so{meant}"
