"""Writes sessions to files and lists them in a spec.

Files are overwritten only with `force`, and a spec only gains lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UsageError
from holdfast.model.codec import digest, make_encodable, to_builtins
from holdfast.model.observation import MASK
from holdfast.model.session import RecordedSession
from holdfast.model.task import RecordedResponse
from holdfast.reading.node import Node, parse_plain
from holdfast.reading.tree import parse
from holdfast.report.formats.files import write_atomically
from holdfast.secrets.spelling import KEY_SHAPED
from holdfast.spec.rules.fault_entry import write_faults

DEEPEST = 90
"""The deepest nesting of a tool's result; session files are read up to 100 levels."""
_NAME = 80
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\r]")


class WrittenFiles(Struct, frozen=True):
    """The files that were written and those that already had the right content."""

    written: tuple[Path, ...] = ()
    unchanged: tuple[Path, ...] = ()

    @property
    def all_files(self) -> tuple[Path, ...]:
        return (*self.written, *self.unchanged)


def dump_session(session: RecordedSession) -> str:
    """Return the session as YAML that reads back as the same session; values that look like keys are masked."""

    class Dumper(yaml.SafeDumper):
        """Writes text that Holdfast and other YAML readers read alike."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    Dumper.add_representer(str, _represent_text)
    text: str = yaml.dump(_build_map(session), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


def build_file_name(id: str) -> str:
    """Return a safe file name for a session, the same for the same id."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", id).strip("-.")[:_NAME]
    mark = "" if safe == id else f"-{digest(id.encode('utf-8', 'replace'), 4)}"
    return f"{safe or 'session'}{mark}.yaml"


def write_sessions(sessions: Sequence[RecordedSession], folder: Path, *, force: bool) -> WrittenFiles:
    """Write one file per session; without `force`, raises UsageError before it would overwrite another content."""
    texts = {folder / build_file_name(session.id): dump_session(session) for session in sessions}
    unchanged = [path for path, text in texts.items() if _read_content(path) == text.encode()]
    conflicting = [path for path in texts if path.exists() and path not in unchanged]
    if conflicting and not force:
        more = f" and {len(conflicting) - 1} more" if len(conflicting) > 1 else ""
        raise UsageError(
            f"{conflicting[0]}{more}: the file exists with different content; nothing was written",
            hint="name another folder, or overwrite with --force",
            code="session-unusable",
        )
    folder.mkdir(parents=True, exist_ok=True)
    written = [path for path in texts if path not in unchanged]
    for path in written:
        write_atomically(path, [texts[path].encode()])
    return WrittenFiles(tuple(written), tuple(unchanged))


def is_too_deep(response: RecordedResponse) -> bool:
    """Return whether the result is nested too deeply for a session file."""
    try:
        value = msgspec.json.decode(response.response)
    except (msgspec.DecodeError, RecursionError):
        return True
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            return True
        level = [inner for value in level for inner in _list_inner(value)]
    return False


def _list_inner(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _read_content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _build_map(session: RecordedSession) -> dict[str, Any]:
    """Return the keys of the session file, without empty ones."""
    turns = session.turns
    keys: dict[str, Any] = {
        "id": session.id,
        "name": session.name,
        "source": session.source,
        "captured_at": session.captured_at,
        "input": turns[0] if len(turns) == 1 else list(turns),
        "context": to_builtins(session.context),
        "scenario": session.scenario and {"name": session.scenario.name, **write_faults(session.scenario.injections)},
        "seed": session.seed,
        "fired": to_builtins(session.fired),
        "tool_responses": [_build_response(response) for response in session.responses],
        "expected_failure": session.expected_failure,
        "failed_rules": list(session.failed_rules),
        "contract": session.contract,
    }
    plain: dict[str, Any] = _mask({key: value for key, value in keys.items() if value or value in (0, ())})
    return plain


def _build_response(response: RecordedResponse) -> dict[str, Any]:
    written = replace(response, latency_ms=round(response.latency_ms, 3))
    packed = {"response": response.response, "arguments": response.arguments}
    keys: dict[str, Any] = {"tool": "", "response": "", **to_builtins(written)}  # without defaults
    return keys | {name: msgspec.json.decode(text) for name, text in packed.items() if text}


def _mask(value: Any) -> Any:
    if isinstance(value, str):
        return KEY_SHAPED.sub(MASK, make_encodable(value))
    if isinstance(value, dict):
        return {_mask(key): _mask(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_mask(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) < value < 2**63:
        return str(value)
    return value


def _represent_text(dumper: Any, text: str) -> Any:
    """Quote text that would be read as another type, and keep lines as lines."""
    style = None
    if _CONTROL.search(text) or parse_plain(text)[0] != "text":
        style = '"'
    elif "\n" in text and not any(line != line.rstrip() or line[:1].isspace() for line in text.splitlines()):
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def add_session(text: str, file: str) -> str | None:
    """Return the spec's text with `file` added to its sessions; None if adding lines is not enough."""
    root, problems = parse(text.removeprefix("\ufeff"))
    if root is None or root.kind != "map" or problems:
        return None
    if file in _list_files(root):
        return text
    extended = _insert_file(text, root, file)
    return extended if extended is not None and _is_right(root, extended, file) else None


def _list_files(root: Node) -> list[Any]:
    listed = root.get("replays").get("sessions") if root.has("replays") else None
    return (
        [item.get("file").value for item in listed.items if item.kind == "map" and item.has("file")] if listed else []
    )


def _insert_file(text: str, root: Node, file: str) -> str | None:
    lines = text.splitlines(keepends=True)
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += end
    entry = f"- file: {_quote_yaml(file)}{end}"
    replays = root.get("replays") if root.has("replays") else None
    if replays is None or replays.kind == "null":
        if replays is not None:
            return None
        return "".join([*lines, end, f"replays:{end}", f"  sessions:{end}", f"    {entry}"])
    if replays.kind != "map" or not replays.pairs:
        return None
    if not replays.has("sessions"):
        first = next(iter(replays.pairs.values()))[0]
        pad = " " * (first.column - 1)
        lines.insert(first.line - 1, f"{pad}sessions:{end}{pad}  {entry}")
        return "".join(lines)
    return _append_entry(lines, replays.get("sessions"), entry)


def _append_entry(lines: list[str], listed: Node, entry: str) -> str | None:
    """Return the text with a line added after the last item of a block list."""
    if listed.kind != "list" or not listed.items:
        return None
    last = listed.items[-1]
    dash = lines[last.line - 1].find("-")
    if dash < 0 or lines[last.line - 1][:dash].strip():
        return None
    # The new item goes below the last line that belongs to the list: deeper than its dash, or a comment or blank line
    # between such lines.
    at = last.line
    for number in range(last.line, len(lines)):
        line = lines[number]
        if line.strip() and not line.lstrip().startswith("#") and len(line) - len(line.lstrip()) <= dash:
            break
        if line.strip() and len(line) - len(line.lstrip()) > dash:
            at = number + 1
    lines.insert(at, " " * dash + entry)
    return "".join(lines)


def _is_right(root: Node, extended: str, file: str) -> bool:
    """Return whether the new text equals the old one plus one session."""
    read, problems = parse(extended.removeprefix("\ufeff"))
    if read is None or problems:
        return False
    wanted: dict[str, Any] = root.to_plain()
    replays = dict(wanted.get("replays") or {})
    replays["sessions"] = [*(replays.get("sessions") or []), {"file": file}]
    return bool(read.to_plain() == {**wanted, "replays": replays})


def _quote_yaml(file: str) -> str:
    text: str = yaml.safe_dump(file, default_flow_style=True, allow_unicode=True, width=float("inf"))
    return text.removesuffix("...\n").strip()
