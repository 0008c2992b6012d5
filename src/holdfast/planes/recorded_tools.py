"""RecordedTools: answers tool calls of a replayed session from its recording. No tool is called.

It replaces the real tool, so faults act on its replies as they would on the tool's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from threading import Lock
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct

from holdfast.model.shorten import shorten
from holdfast.model.task import RecordedResponse, RecordedUse, Recording, Task
from holdfast.planes.describe import describe, format_exception, shorten_target
from holdfast.planes.injection.firing import TOOL_PLANES
from holdfast.planes.recorded_value import read_reply
from holdfast.planes.traced_call import format_arguments
from holdfast.planes.urls import is_origin, is_url, matches_url
from holdfast.protocols.fault import Call, Dropped, Failed, Forward, Reply, Sleep

ReportUse: TypeAlias = Callable[[RecordedUse], None]

_BODY_KEPT = 2_000
"""Maximum length of a recorded error's message, in characters."""


class ReplayedReply(Reply, frozen=True):
    """A reply from a recording."""

    status: int = 200


class _UnusedResponse(Struct, frozen=True):
    """A response that no call has received yet, and its position among the responses of its tool."""

    n: int
    response: RecordedResponse


class RecordedTools:
    """The unused part of one trial's recording. Calls may come from several threads."""

    def __init__(self, recording: Recording, report_use: ReportUse) -> None:
        self._live = recording.live
        self._report_use = report_use
        self._lock = Lock()
        counts: Counter[str] = Counter()
        self._unused: list[_UnusedResponse] = []
        for response in recording.responses:
            counts[response.tool] += 1
            self._unused.append(_UnusedResponse(counts[response.tool], response))
        self._tools = tuple(counts)
        self._only_urls = bool(counts) and all(map(is_url, counts))

    def can_answer(self, plane: str, target: str) -> bool:
        """Return whether the recording answers this call. It answers tool calls, but not calls that only open a
        connection.

        If the recording holds only URLs, a named tool is run: its requests are answered at their URLs.
        """
        if plane == "http":
            return not is_origin(target)
        return plane in TOOL_PLANES and not self._only_urls

    def wrap_forward(
        self, forward: Forward, names: Sequence[str], sleep: Sleep, sent: Callable[[], None] | None = None
    ) -> Forward:
        """Return how to forward a call to the tool with these names. `sent` is called when it was forwarded, to the
        recording or to the tool."""

        async def answer(call: Call) -> Reply:
            return await self._answer(call, forward, names, sleep, sent or (lambda: None))

        return answer

    async def _answer(
        self, call: Call, forward: Forward, names: Sequence[str], sleep: Sleep, sent: Callable[[], None]
    ) -> Reply:
        recorded = self._take_response(call, names)
        if recorded is None:
            at = _find_first(call.plane, names, self._tools)  # a tool that has no responses left
            tool = shorten_target(names[0]) if at is None else self._tools[at]
            self._report_use(RecordedUse(tool, 0, call.plane, 0, format_call(call), passed=self._live))
            if not self._live:
                raise _build_lost_connection(call, "the recording has no reply for this call")
            sent()
            return await forward(call)
        response = recorded.response
        self._report_use(RecordedUse(response.tool, recorded.n, call.plane, response.status, format_call(call)))
        if response.latency_ms > 0:
            await sleep(response.latency_ms)
        if response.status == 0:
            raise _build_lost_connection(call, "connection error")
        sent()
        in_agent, text = response.python and call.plane == "tool", _adapt_reply(response, call.arguments)
        value = read_reply(text) if in_agent else decode_response(text)
        if response.status >= 400:
            raise _build_failure(response, value)
        return ReplayedReply(value, status=response.status)

    def _take_response(self, call: Call, names: Sequence[str]) -> _UnusedResponse | None:
        """Return the recorded response of a tool with one of these names whose call is most similar; of several, the
        next.
        """
        with self._lock:
            at = _find_first(call.plane, names, [unused.response.tool for unused in self._unused])
            if at is None:
                return None
            tool = self._unused[at].response.tool
            candidates = [unused for unused in self._unused if unused.response.tool == tool]
            # Tools may be called in another order than recorded, with other ids and times. The most similar call wins,
            # and of equally similar ones the earliest, because max() keeps the first.
            best = max(candidates, key=lambda unused: score_likeness(unused.response.arguments, call.arguments))
            self._unused.remove(best)
            return best


def _find_first(plane: str, names: Sequence[str], tools: Sequence[str]) -> int | None:
    """Return the first recorded name that matches: exact names in order, then URL globs."""
    for name in names:
        if name in tools:
            return tools.index(name)
    urls = enumerate(tools) if plane == "http" else ()
    return next((at for at, tool in urls if is_url(tool) and matches_url(tool, names[0])), None)


_GENERATED = re.compile(
    r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}"  # a UUID
    r"|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?"  # a date, with its time
    r"|(?<![\w.])1[6-9]\d{8}(?:\d{3}){0,3}(?:\.\d+)?(?![\w.])"  # seconds to nanoseconds since 1970, to 2033
    r"|(?<!\w)(?=\w*\d)(?=\w*[a-zA-Z])\w{16,}(?!\w)"  # a token of letters and digits
)
"""Values that agents generate for each call: ids, times and tokens."""
_LONG_NUMBER = re.compile(r"(?<![\w.])-?(?=[\d.]{4})\d+(?:\.\d+)?(?![\w.])|(?<![\w.])[a-zA-Z]+[_-]?\d{4,}(?![\w.])")
"""A number that may identify a call, alone or after a word: `483920`, `req-483920`."""


def replace_generated(text: str, mark: str = "#") -> str:
    """Return the text with each id, time or token replaced by a mark, so that two attempts at one call are equal."""
    return _GENERATED.sub(mark, text)


def replace_numbers(text: str) -> str:
    """Return the text without generated values and without numbers that may be random."""
    return _LONG_NUMBER.sub("#", replace_generated(text))


def score_likeness(recorded: str, arguments: Mapping[str, Any]) -> int:
    """Score how similar a call's arguments are to the recorded ones; 0 if none were recorded.

    An equal argument counts double, one that differs only in ids and times counts once, and any other difference is
    subtracted.
    """
    recorded_arguments = decode_response(recorded) if recorded else {}
    if not isinstance(recorded_arguments, dict):
        return 0
    return sum(
        _score_argument(format_arguments({name: value}), arguments, name) for name, value in recorded_arguments.items()
    )


def _adapt_reply(response: RecordedResponse, arguments: Mapping[str, Any]) -> str:
    """Return the recorded reply, with ids, times and numbers of the recorded call replaced by those of this call."""
    recorded_arguments = decode_response(response.arguments) if response.arguments else {}
    replacements: dict[str, str] = {}
    for name in recorded_arguments if isinstance(recorded_arguments, dict) else ():
        recorded, current = (_find_repeatable(argument) for argument in (recorded_arguments[name], arguments.get(name)))
        replacements |= dict(zip(recorded, current, strict=True)) if len(recorded) == len(current) else {}
    replacements = {old: new for old, new in replacements.items() if old != new}
    if not replacements:
        return response.response
    # In one pass: a number that replaces another must not be replaced in turn.
    either = "|".join(map(re.escape, sorted(replacements, key=len, reverse=True)))
    return re.sub(rf"(?<![\w.])(?:{either})(?![\w.]*\w)", lambda match: replacements[match[0]], response.response)


def _find_repeatable(value: Any) -> list[str]:
    """Return the parts of an argument that a reply may repeat: ids, times, tokens, and numbers of at least four
    digits.
    """
    text = format_arguments({"": value}).decode()
    return _GENERATED.findall(text) or _LONG_NUMBER.findall(text)


def _score_argument(recorded: bytes, arguments: Mapping[str, Any], name: str) -> int:
    if name not in arguments:
        return -1
    current = format_arguments({name: arguments[name]})
    if current == recorded:
        return 2
    return 1 if replace_generated(current.decode()) == replace_generated(recorded.decode()) else -1


def decode_response(response: str) -> Any:
    """Return the value of a recorded response; text that is not JSON stays text."""
    try:
        return msgspec.json.decode(response)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return response


def format_call(call: Call) -> str:
    """Return a call in a few words: `search(q=kettle)`, `GET https://example.com/`."""
    if call.plane == "http":
        return f"{call.arguments.get('method', '')} {shorten_target(call.target)}".strip()
    arguments = ", ".join(f"{name}={describe(value)}" for name, value in call.arguments.items())
    return shorten(f"{shorten_target(call.target)}({arguments})")


def _build_lost_connection(call: Call, why: str) -> Failed:
    """Return a missing connection, as the plane presents it. An MCP server reports it as an error: its other tools
    still work."""
    message = f"{shorten(call.target)}: {why}"
    return Failed(message, kind="rpc_error") if call.plane == "mcp" else Dropped(message, kind="closed")


def _build_failure(response: RecordedResponse, value: Any) -> Failed:
    status = response.status
    if isinstance(value, BaseException):
        failed = Failed(format_exception(value), status=status)
        failed.exception = value
        return failed
    if response.raises and isinstance(value, str):
        failed = Failed(value, status=status)
        failed.raises = response.raises
        return failed
    try:
        words = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        words = f"{status} Error"
    if value is not None:
        body = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        words = f"{words}: {shorten(body, _BODY_KEPT)}"
    return Failed(words, status=status, body=value)


USES_KEPT = 1_000
"""Maximum number of calls listed per trial."""
_LISTED = 10


def write_replay_notes(task: Task, uses: Sequence[RecordedUse]) -> tuple[str, ...]:
    """Return how the observed calls differ from the session recorded for the task; empty for another task."""
    if task.recording is UNSET:
        return ()
    recorded = Counter(use.tool for use in task.recording.responses)
    used = Counter(use.tool for use in uses if use.is_known)
    notes = _note_unknown_calls(uses, recorded)
    if task.recording.seed is None:  # a session made from a trial has replies in reserve for a fixed agent
        notes += _note_unused(recorded, used)
    if recorded and not used and task.recording.seed is None:
        notes.append("none of the recorded tools was called; the rules were still judged")
    ran = dict.fromkeys(use.tool for use in uses if use.is_known and use.plane == "tool_result")
    if ran:
        notes.append(f"the model received the recorded result, but the tool also ran: {', '.join(ran)}")
    if len(uses) >= USES_KEPT:
        notes.append(f"only the first {USES_KEPT} tool calls are compared with the recording")
    return tuple(notes)


def _note_unknown_calls(uses: Iterable[RecordedUse], recorded: Counter[str]) -> list[str]:
    """List the calls that the recording has no reply for, each once."""
    calls = Counter((use.passed, use.tool in recorded, use.call) for use in uses if not use.is_known)
    notes = []
    for (passed, is_recorded, call), times in list(calls.items())[:_LISTED]:
        repeated = f" ({times} times)" if times > 1 else ""
        exhausted = "; all its recorded replies were used" if is_recorded else ""
        called = "; the tool was called" if passed else ""
        notes.append(f"the recording has no reply for: {call}{repeated}{exhausted}{called}")
    if len(calls) > _LISTED:
        notes.append(f"the recording has no reply for {len(calls) - _LISTED} more calls")
    return notes


def _note_unused(recorded: Counter[str], used: Counter[str]) -> list[str]:
    """List the recorded responses that no call used."""
    notes = []
    for tool, count in recorded.items():
        if not used[tool]:
            notes.append(f"never called: {tool} ({count} response{'s' if count > 1 else ''})")
        elif used[tool] < count:
            notes.append(f"called less often than recorded: {tool} ({used[tool]} of {count} responses)")
    return notes
