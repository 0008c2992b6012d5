"""Which format a file of traces has, and the sessions in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UserError
from holdfast.model.session import RecordedSession
from holdfast.replay.documents import ForeignDocument, documents
from holdfast.replay.foreign_trace import Found, LeftOutTrace
from holdfast.replay.stored_run import SessionsFound
from holdfast.spec.replays import read_sessions

TraceFormat = Literal["langsmith", "otlp", "langfuse", "phoenix", "jsonl", "holdfast"]
FORMATS: tuple[TraceFormat, ...] = TraceFormat.__args__  # type: ignore[attr-defined]  # Literal keeps its values there
_MODULES: Mapping[str, str] = {
    "otlp": "otlp_spans",
    "langsmith": "langsmith_runs",
    "langfuse": "langfuse_traces",
    "phoenix": "phoenix_spans",
    "jsonl": "transcripts",
}
"""In the order in which they are tried: a transcript is the last guess."""
_OURS = frozenset({"tool_responses", "expected_failure", "captured_at", "contract"})


class TraceReader(Struct, frozen=True):
    """An adapter: whether a document is of its format, and the sessions of documents that are."""

    matches: Callable[[Any], bool]
    read: Callable[[Iterable[ForeignDocument]], Iterator[Found]]


def imported(path: Path, format: TraceFormat | None) -> SessionsFound:
    """The sessions of a file; its format is guessed if none is given. UserError if it is of none."""
    if format in (None, "holdfast") and _is_session_file(path):
        return SessionsFound(read_sessions(path))
    stream = documents(path)
    left_out: list[LeftOutTrace] = []
    first = _first(stream, left_out)
    if first is None:
        raise UserError(f"{path}: no line of it is readable as JSON: {left_out[0].why}", hint=_HINT)
    chosen = format or _guessed(path, first)
    if chosen == "holdfast":
        return SessionsFound(read_sessions(path))
    reader = _reader(chosen)
    if not reader.matches(first.value):
        raise UserError(f"{path}: this is not the format {chosen}", hint=_HINT)
    whole = _readable(chain([first], stream), reader, chosen, left_out)
    return _sorted_out(reader.read(whole), left_out)


_HINT = f"say what it is: --format {'|'.join(FORMATS)}"


def _sorted_out(found: Iterable[Found], left_out: list[LeftOutTrace]) -> SessionsFound:
    """Sessions and what was left out; a second one of the same id gets a number."""
    sessions: list[RecordedSession] = []
    times: Counter[str] = Counter()
    for one in found:
        if isinstance(one, LeftOutTrace):
            left_out.append(one)
            continue
        times[one.id] += 1
        sessions.append(one if times[one.id] == 1 else replace(one, id=f"{one.id}-{times[one.id]}"))
    return SessionsFound(tuple(sessions), tuple(left_out))


def _first(stream: Iterator[ForeignDocument | LeftOutTrace], left_out: list[LeftOutTrace]) -> ForeignDocument | None:
    for one in stream:
        if isinstance(one, ForeignDocument):
            return one
        left_out.append(one)
    return None


def _readable(
    stream: Iterable[ForeignDocument | LeftOutTrace], reader: TraceReader, format: str, left_out: list[LeftOutTrace]
) -> Iterator[ForeignDocument]:
    for one in stream:
        if isinstance(one, LeftOutTrace):
            left_out.append(one)
        elif reader.matches(one.value):
            yield one
        else:
            left_out.append(LeftOutTrace(one.name, _unlike(one.value, format)))


def _unlike(value: Any, format: str) -> str:
    from holdfast.replay.foreign_trace import NO_INPUT

    return NO_INPUT if format == "jsonl" and isinstance(value, dict) else f"not of the format {format}"


def _guessed(path: Path, first: ForeignDocument) -> str:
    if isinstance(first.value, dict) and first.name == path.name:
        listed = first.value.get("sessions")
        one = listed[0] if isinstance(listed, list) and listed else first.value
        if isinstance(one, dict) and "id" in one and "input" in one and _OURS & set(one):
            return "holdfast"
    for name in _MODULES:
        if _reader(name).matches(first.value):
            return name
    raise UserError(f"{path}: its format is none that is known", hint=_HINT)


def _is_session_file(path: Path) -> bool:
    return path.suffix in (".yaml", ".yml")


def _reader(name: str) -> TraceReader:
    module = import_module(f"holdfast.replay.{_MODULES[name]}")
    if name == "jsonl":
        return TraceReader(module.matches, lambda found: _each(module.read, found))
    return TraceReader(module.matches, lambda found: module.read(_joined(found)))


def _each(read: Callable[[Any, str], Iterator[Found]], found: Iterable[ForeignDocument]) -> Iterator[Found]:
    for one in found:
        yield from read(one.value, one.name.replace(".jsonl:", "-").replace(".json", "").replace(":", "-"))


def _joined(found: Iterable[ForeignDocument]) -> Any:
    """The lines of one file as one list: the spans of a trace may lie in several of them."""
    values = [one.value for one in found]
    if len(values) == 1:
        return values[0]
    return [inner for value in values for inner in (value if isinstance(value, list) else [value])]
