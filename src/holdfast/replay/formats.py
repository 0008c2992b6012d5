"""Detects the format of a file of traces, and reads its sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from holdfast.model.session import RecordedSession
from holdfast.replay.documents import ForeignDocument, read_documents
from holdfast.replay.foreign_trace import NO_INPUT, Found, LeftOutTrace, SessionsFound, TraceUnreadable
from holdfast.spec.rules.replays import read_sessions

TraceFormat = Literal["langsmith", "otlp", "langfuse", "phoenix", "inspect", "jsonl", "holdfast"]
FORMATS: tuple[TraceFormat, ...] = TraceFormat.__args__  # type: ignore[attr-defined]  # Literal keeps its values there
_MODULES: Mapping[str, str] = {
    "otlp": "otlp_spans",
    "langsmith": "langsmith",
    "langfuse": "langfuse_traces",
    "phoenix": "phoenix_spans",
    "inspect": "inspect_logs",
    "jsonl": "transcripts",
}
"""In the order in which they are tried: a transcript is the last guess."""
_OURS = frozenset({"tool_responses", "expected_failure", "captured_at", "contract"})


def import_file(path: Path, format: TraceFormat | None) -> SessionsFound:
    """Return the sessions of a file; without `format` it is guessed. Raise UserError if no format fits."""
    is_ours = format in (None, "holdfast") and path.suffix in (".yaml", ".yml")
    chosen = "holdfast" if is_ours else _choose_format(path, format)
    if chosen == "holdfast":
        return SessionsFound(read_sessions(path))
    left_out: list[LeftOutTrace] = []
    return _number_sessions(_read(chosen, _filter_readable(read_documents(path), chosen, left_out)), left_out)


def import_files(paths: Iterable[Path], format: TraceFormat | None) -> SessionsFound:
    """Return the sessions of several files; of two sessions with one id, the later gets a number."""
    files = [import_file(path, format) for path in paths]
    left_out = [trace for each in files for trace in each.left_out]
    return _number_sessions((session for each in files for session in each.sessions), left_out)


_HINT = f"name the format: --format {'|'.join(FORMATS)}"


def _number_sessions(files: Iterable[Found], left_out: list[LeftOutTrace]) -> SessionsFound:
    """Return the sessions and the left-out traces; a second session with the same id gets a number."""
    sessions: list[RecordedSession] = []
    times: Counter[str] = Counter()
    for session in files:
        if isinstance(session, LeftOutTrace):
            left_out.append(session)
            continue
        times[session.id] += 1
        sessions.append(session if times[session.id] == 1 else replace(session, id=f"{session.id}-{times[session.id]}"))
    return SessionsFound(tuple(sessions), tuple(left_out))


def _filter_readable(
    stream: Iterable[ForeignDocument | LeftOutTrace], format: str, left_out: list[LeftOutTrace]
) -> Iterator[ForeignDocument]:
    for document in stream:
        if isinstance(document, LeftOutTrace):
            left_out.append(document)
        elif _load(format).matches(document.value):
            yield document
        else:
            left_out.append(LeftOutTrace(document.name, _explain_mismatch(document.value, format)))


def _explain_mismatch(value: Any, format: str) -> str:
    if format == "jsonl" and isinstance(value, dict):
        return NO_INPUT
    like = next((name for name in _MODULES if _load(name).matches(value)), "")
    return f"not of the format {format}, which the other lines have" + (f": it looks like {like}" if like else "")


def _choose_format(path: Path, format: TraceFormat | None) -> str:
    """Return the given format, or the one that most records have; ties go to the earlier format. Raise UserError if
    none fits.
    """
    readers = {name: _load(name) for name in ([format] if format in _MODULES else _MODULES) if name}
    counts: Counter[str] = Counter()
    unreadable = ""
    count = 0
    for document in read_documents(path):
        if isinstance(document, LeftOutTrace):
            unreadable = unreadable or document.why
            continue
        count += 1
        if format in (None, "holdfast") and _is_ours(path, document):
            return "holdfast"
        # Each record votes for the first format that fits it, from the most to the least specific: nearly every object
        # could be a transcript.
        counts.update(islice((name for name, reader in readers.items() if reader.matches(document.value)), 1))
    if not count:
        raise TraceUnreadable(f"{path}: none of its lines is valid JSON: {unreadable}", hint=_HINT)
    if format == "holdfast":
        return format
    if not counts:
        what = "its format is unknown" if format is None else f"this is not the format {format}"
        raise TraceUnreadable(f"{path}: {what}", hint=_HINT)
    return max(_MODULES, key=lambda name: counts[name])


def _is_ours(path: Path, document: ForeignDocument) -> bool:
    """Return whether this is a complete file of sessions in Holdfast's own format."""
    if not isinstance(document.value, dict) or document.name != path.name:
        return False
    listed = document.value.get("sessions")
    first = listed[0] if isinstance(listed, list) and listed else document.value
    return isinstance(first, dict) and "id" in first and "input" in first and bool(_OURS & set(first))


def _load(name: str) -> Any:
    """Return the module of a format: `matches` says whether a document has it, `read` yields the sessions."""
    return import_module(f"holdfast.replay.{_MODULES[name]}")


def _read(name: str, documents: Iterable[ForeignDocument]) -> Iterator[Found]:
    if name in ("inspect", "jsonl"):
        for one in documents:
            label = one.name.replace(".jsonl:", "-").replace(".json", "").replace(":", "-")
            yield from _load(name).read(one.value, label)
        return
    # The spans of a trace may be in several lines of the file, so its lines are read as one list.
    values = [document.value for document in documents]
    listed = [inner for value in values for inner in (value if isinstance(value, list) else [value])]
    yield from _load(name).read(values[0] if len(values) == 1 else listed)
