"""The text that a judge rates: something the agent wrote, truncated to a limit."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from holdfast.checks.state.mock_requests import FIELD, MISSING, get_request_value, read_requests
from holdfast.checks.values import to_text
from holdfast.errors import HarnessError, OutsideError
from holdfast.model.codec import make_encodable
from holdfast.protocols.sandbox import FileChange, Sandbox
from holdfast.protocols.service import Mock
from holdfast.protocols.world import World

LARGEST = 10_000_000
"""Maximum number of bytes for a judge, whatever `max_input` says; checks record no more."""


class JudgeInput(Struct, frozen=True, omit_defaults=True):
    """The text under judgement."""

    text: str = ""
    cut: bool = False
    """The text was truncated."""


def truncate_input(text: str, limit: int) -> JudgeInput:
    """Return the text, encodable as JSON and truncated to `limit` bytes."""
    data = make_encodable(text[: limit + 1]).encode()
    if len(text) <= limit and len(data) <= limit:
        return JudgeInput(data.decode())
    return JudgeInput(data[:limit].decode("utf-8", "ignore"), True)


def join_replies(replies: Sequence[str], limit: int) -> JudgeInput:
    """Return all replies of a conversation, truncated to `limit` bytes, each from its beginning; a single one as it
    is.
    """
    if len(replies) == 1 or not any(map(str.strip, replies)):
        return truncate_input("".join(replies), limit)
    heads = [f"=== reply {n} of {len(replies)}\n" for n in range(1, len(replies) + 1)]
    room = max(0, limit - len("\n\n".join(heads)))
    shown = dict[int, JudgeInput]()
    # The shortest first: a short reply leaves the rest of its share to longer ones.
    by_size = sorted(range(len(replies)), key=lambda n: len(replies[n].encode("utf-8", "replace")))
    for done, n in enumerate(by_size):
        shown[n] = truncate_input(replies[n], room // (len(replies) - done))
        room -= len(shown[n].text.encode())
    joined = truncate_input("\n\n".join(f"{head}{shown[n].text}" for n, head in enumerate(heads)), limit)
    return JudgeInput(joined.text, joined.cut or any(one.cut for one in shown.values()))


def read_mock_input(mock: Mock, field: str, limit: int) -> JudgeInput:
    """Return a field of a mock's recorded requests; empty if the request or the field is missing."""
    recorded = read_requests(mock)
    if field == "request_count":
        return truncate_input(str(len(recorded.requests) + recorded.more), limit)
    parts = FIELD.fullmatch(field)
    index = int(parts[2]) if parts and parts[2] else -1
    if parts is None or not -len(recorded.requests) <= index < len(recorded.requests):
        return JudgeInput()
    request, part = recorded.requests[index], parts[3] or ""
    if part.startswith("body") and (request.unread or (request.cut and part != "body")):
        raise HarnessError(f"{field} is not known: {request.hidden}", code="check-input-lost")
    value = get_request_value(request, part)
    return JudgeInput() if value is MISSING or value is None else truncate_input(to_text(value), limit)


def read_workspace_input(world: World, limit: int) -> JudgeInput:
    """Return every file that the agent changed, with its path and content; reads no more than the limit."""
    parts: list[str] = []
    room = limit
    for change in world.changes():
        part = _format_changed_file(world.sandbox, change, room)
        parts.append(part)
        room -= len(part.encode("utf-8", "replace"))
        if room <= 0:
            return JudgeInput(truncate_input("".join(parts), limit).text, True)
    return truncate_input("".join(parts), limit)


def _format_changed_file(sandbox: Sandbox, change: FileChange, room: int) -> str:
    head = f"=== {change.op}: {change.path} ({change.bytes} bytes)\n"
    if change.op == "deleted":
        return head
    try:
        host_path = sandbox.find(change.path)
        if host_path is None or not host_path.is_file():
            return head
        with host_path.open("rb") as file:
            data = file.read(max(0, room) + 1)
    except OutsideError as left:
        return f"{head}({left})\n"
    except OSError as refused:
        return f"{head}(cannot be read: {refused.strerror})\n"
    return f"{head}(binary)\n" if b"\0" in data else f"{head}{data.decode('utf-8', 'replace')}\n"
