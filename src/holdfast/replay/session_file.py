"""A session as the text of a file, and files of sessions in a folder: nothing is overwritten unasked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.errors import UsageError
from holdfast.model.codec import digest, encodable
from holdfast.model.observation import MASK
from holdfast.model.session import RecordedSession
from holdfast.model.task import RecordedResponse
from holdfast.reading.scalars import plain
from holdfast.spec.fault_entry import written_faults
from holdfast.spec.secrecy import KEY_SHAPED

DEEPEST = 90
"""Levels that a tool's answer may have: a file of ours is read to 100."""
_NAME = 80
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\r]")


class WrittenFiles(Struct, frozen=True):
    """What writing sessions came to."""

    written: tuple[Path, ...] = ()
    unchanged: tuple[Path, ...] = ()

    @property
    def all(self) -> tuple[Path, ...]:
        return (*self.written, *self.unchanged)


def session_text(session: RecordedSession) -> str:
    """The session as YAML, keys that are shaped like secrets masked. What is read from it is the same session."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes text so that our reader and others read the same."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    Dumper.add_representer(str, _represented)
    text: str = yaml.dump(_plain(session), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


def file_name(id: str) -> str:
    """A name for the session's file that stays in its folder, the same for the same id."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", id).strip("-.")[:_NAME]
    mark = "" if safe == id else f"-{digest(id.encode('utf-8', 'replace'), 4)}"
    return f"{safe or 'session'}{mark}.yaml"


def write_sessions(sessions: Sequence[RecordedSession], folder: Path, *, force: bool) -> WrittenFiles:
    """One file each. UsageError, and nothing written, if one is there with other content and `force` is not set."""
    texts = {folder / file_name(session.id): session_text(session) for session in sessions}
    unchanged = [path for path, text in texts.items() if _content(path) == text.encode()]
    taken = [path for path in texts if path.exists() and path not in unchanged]
    if taken and not force:
        more = f" and {len(taken) - 1} more" if len(taken) > 1 else ""
        raise UsageError(
            f"{taken[0]}{more}: the file is there, with something else in it; nothing was written",
            hint="name another folder, or overwrite with --force",
        )
    folder.mkdir(parents=True, exist_ok=True)
    written = [path for path in texts if path not in unchanged]
    for path in written:
        temporary = path.with_name(path.name + ".new")
        temporary.write_bytes(texts[path].encode())
        temporary.replace(path)
    return WrittenFiles(tuple(written), tuple(unchanged))


def too_deep(response: RecordedResponse) -> bool:
    """Whether no file of ours could hold the answer."""
    try:
        value = msgspec.json.decode(response.response)
    except (msgspec.DecodeError, RecursionError):
        return True
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            return True
        level = [inner for one in level for inner in _inner(one)]
    return False


def _inner(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _plain(session: RecordedSession) -> dict[str, Any]:
    """The keys of the file, those that say nothing left out."""
    turns = session.turns
    made: dict[str, Any] = {
        "id": session.id,
        "name": session.name,
        "source": session.source,
        "captured_at": session.captured_at,
        "input": turns[0] if len(turns) == 1 else list(turns),
        "context": [{"role": one.role, "content": one.content} for one in session.context],
        "scenario": session.scenario and {"name": session.scenario.name, **written_faults(session.scenario.injections)},
        "seed": session.seed,
        "fired": session.fired and [{"fault": one.fault, "call": one.call} for one in session.fired],
        "tool_responses": [_response(one) for one in session.responses],
        "expected_failure": session.expected_failure,
        "contract": session.contract,
    }
    kept: dict[str, Any] = _masked({key: value for key, value in made.items() if value or value in (0, ())})
    return kept


def _response(one: RecordedResponse) -> dict[str, Any]:
    made: dict[str, Any] = {"tool": one.tool, "response": msgspec.json.decode(one.response)}
    if one.python:
        made["python"] = True
    if one.arguments:
        made["arguments"] = msgspec.json.decode(one.arguments)
    if one.status != 200:
        made["status"] = one.status
    if one.latency_ms:
        made["latency_ms"] = round(one.latency_ms, 3)
    if one.raises:
        made["raises"] = one.raises
    return made


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return KEY_SHAPED.sub(MASK, encodable(value))
    if isinstance(value, dict):
        return {_masked(key): _masked(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) < value < 2**63:
        return str(value)
    return value


def _represented(dumper: Any, text: str) -> Any:
    """Quoted where a plain word would be read as something else; lines stay lines."""
    style = None
    if _CONTROL.search(text) or plain(text)[0] != "text":
        style = '"'
    elif "\n" in text and not any(line != line.rstrip() or line[:1].isspace() for line in text.splitlines()):
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
