"""What the reader of a replayed trial should know: how its calls and the recording differ. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import UNSET

from holdfast.model.task import RecordedUse, Task

USES_KEPT = 1_000
"""Calls of one trial that are listed, whatever the agent does."""
_LISTED = 10


def replay_notes(task: Task, seen: Sequence[RecordedUse]) -> tuple[str, ...]:
    """How the calls that were seen differ from what the task's session recorded; nothing for another task."""
    if task.recording is UNSET:
        return ()
    recorded = Counter(one.tool for one in task.recording.responses)
    used = Counter(one.tool for one in seen if one.known)
    notes = _unknown(seen, recorded)
    if task.recording.seed is None:  # a trial that became a session has replies in store for an agent that was fixed
        notes += _left(recorded, used)
    if recorded and not used and task.recording.seed is None:
        notes.append("none of the recorded tools was called; the rules were judged all the same")
    ran = dict.fromkeys(one.tool for one in seen if one.known and one.plane == "tool_result")
    if ran:
        notes.append(f"the model read the recorded result; the tool itself had run: {', '.join(ran)}")
    if len(seen) >= USES_KEPT:
        notes.append(f"only the first {USES_KEPT} calls of tools are compared with the recording")
    return tuple(notes)


def _unknown(seen: Iterable[RecordedUse], recorded: Counter[str]) -> list[str]:
    """Calls that the recording has nothing for, each once."""
    calls = Counter((one.passed, one.tool in recorded, one.call) for one in seen if not one.known)
    notes = [_unknown_call(*key, times) for key, times in list(calls.items())[:_LISTED]]
    if len(calls) > _LISTED:
        notes.append(f"the recording does not know {len(calls) - _LISTED} more calls")
    return notes


def _unknown_call(passed: bool, named: bool, call: str, times: int) -> str:
    often = f" ({times} times)" if times > 1 else ""
    spent = "; all that was recorded for it was used up" if named else ""
    return f"the recording does not know: {call}{often}{spent}{'; it was let through' if passed else ''}"


def _left(recorded: Counter[str], used: Counter[str]) -> list[str]:
    """Responses that nobody asked for."""
    notes = []
    for tool, count in recorded.items():
        if not used[tool]:
            notes.append(f"never called: {tool} ({count} response{'s' if count > 1 else ''})")
        elif used[tool] < count:
            notes.append(f"called less often than recorded: {tool} ({used[tool]} of {count} responses)")
    return notes
