"""Converts LangSmith traces to sessions: runs from an export, or fetched with LangSmith's own client."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from holdfast.errors import HarnessError, UserError
from holdfast.model.session import SessionSource
from holdfast.replay.foreign_json import (
    compute_duration_ms,
    decode_json,
    read_at,
    read_first,
    read_list,
    read_text,
    to_seconds,
)
from holdfast.replay.foreign_messages import join_content
from holdfast.replay.foreign_trace import Found, LeftOutTrace, SessionsFound, TraceStep, build_sessions
from holdfast.spec.sections.run import parse_range

SOURCE = "langsmith"


def matches(document: Any) -> bool:
    """Return whether this is a run, or a list of runs."""
    first = document[0] if isinstance(document, list) and document else document
    first = read_list(first, "runs")[0] if read_list(first, "runs") else first
    return isinstance(read_at(first, "run_type"), str)


def read(document: Any) -> Iterator[Found]:
    """Yield a session for every trace among the runs."""
    listed = document if isinstance(document, list) else read_list(document, "runs") or [document]
    return build_sessions(_set_traces(step for entry in listed for step in _flatten_runs(entry)), SOURCE)


def _set_traces(steps: Iterable[TraceStep]) -> Iterator[TraceStep]:
    """Yield the steps, each with the id of its root as its trace."""
    # An export may hold only some runs of a trace. Each run whose parent is not among them is a session of its own.
    by_id = {step.id: step for step in steps}
    for step in by_id.values():
        root, visited = step, {step.id}
        while root.parent in by_id and root.parent not in visited:
            root = by_id[root.parent]
            visited.add(root.id)
        yield replace(step, trace=root.id)


def _unwrap_output(outputs: Any) -> Any:
    """Return a tool's result: LangChain wraps it as `output`, and that in a message."""
    unwrapped = outputs["output"] if isinstance(outputs, dict) and set(outputs) == {"output"} else outputs
    inner = read_at(unwrapped, "kwargs") or unwrapped
    if isinstance(inner, dict) and "content" in inner and (inner.get("type") == "tool" or "tool_call_id" in inner):
        return decode_json(join_content(inner["content"]))
    return decode_json(unwrapped)


def _flatten_runs(document: Any) -> Iterator[TraceStep]:
    """Yield a run and its children, which an export may nest."""
    waiting = [(document, "")]
    while waiting:
        run, parent = waiting.pop()
        if id := read_text(run, "id"):
            yield _build_step(run, parent)
            waiting += [(child, id) for child in read_list(run, "child_runs")]


def _build_step(run: Any, parent: str = "") -> TraceStep:
    kind = read_text(run, "run_type")
    return TraceStep(
        trace="",
        id=read_text(run, "id"),
        parent=read_text(run, "parent_run_id") or parent,
        name=read_text(run, "name"),
        kind="tool" if kind == "tool" else "model" if kind == "llm" else "",
        inputs=(read_first(run, "inputs"),),
        output=_unwrap_output(read_at(run, "outputs")),
        arguments=read_first(run, "inputs"),
        error=read_text(run, "error"),
        began=to_seconds(read_at(run, "start_time")) or 0.0,
        latency_ms=compute_duration_ms(read_at(run, "start_time"), read_at(run, "end_time")),
    )


KEYS = ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
ENDPOINTS = ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT")
_FIELDS = ("id", "run_type", "name", "parent_run_id", "inputs", "outputs", "error", "start_time", "end_time")
_WAIT_MS = (5_000, 60_000)


def fetch_sessions(source: SessionSource, environ: Mapping[str, str], now: datetime) -> SessionsFound:
    """Return the sessions of a source. Raise HarnessError if it cannot be reached, UserError if it refuses or has no
    such run.
    """
    client = _open_client(environ)
    with _translate_errors(source, environ), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client's own deprecations
        runs = list(_fetch_run(client, source.run) if source.run else _fetch_project(client, source, now))
    return SessionsFound(
        tuple(run for run in runs if not isinstance(run, LeftOutTrace)),
        tuple(run for run in runs if isinstance(run, LeftOutTrace)),
    )


def _open_client(environ: Mapping[str, str]) -> Any:
    key = next((environ[name] for name in KEYS if environ.get(name)), "")
    if not key:
        raise UserError(
            "LangSmith needs a key: LANGSMITH_API_KEY is not set",
            hint="export LANGSMITH_API_KEY=…",
            code="langsmith-key",
        )
    try:
        from langsmith import Client
        from urllib3.util import Retry
    except ImportError as missing:
        raise UserError("LangSmith needs its client", hint="pip install langsmith", code="extra-missing") from missing
    url = next((environ[name] for name in ENDPOINTS if environ.get(name)), None)
    return Client(
        api_url=url, api_key=key, timeout_ms=_WAIT_MS, retry_config=Retry(total=1, backoff_factor=0.2),
        auto_batch_tracing=False,
    )  # fmt: skip


@contextmanager
def _translate_errors(source: SessionSource, environ: Mapping[str, str]) -> Iterator[None]:
    """Convert the client's exceptions to errors of the user or the harness."""
    from langsmith import utils
    from requests import RequestException

    where = next((environ[name] for name in ENDPOINTS if environ.get(name)), "its usual address")
    try:
        yield
    except utils.LangSmithNotFoundError as absent:
        raise UserError(
            f"{source.words}: there is none at {where}",
            hint="check the name and the key's account",
            code="langsmith-failed",
        ) from absent
    except utils.LangSmithAuthError as refused:
        raise UserError(
            f"{source.words}: {where} refuses the key", hint="check LANGSMITH_API_KEY", code="langsmith-key"
        ) from refused
    except utils.LangSmithUserError as wrong:
        raise UserError(f"{source.words}: {_shorten_error(wrong)}", code="langsmith-failed") from wrong
    except (utils.LangSmithError, RequestException, OSError, ValueError) as broken:
        remedy = "check LANGSMITH_ENDPOINT and the network, or replay the sessions that were imported before"
        raise HarnessError(
            f"{source.words} cannot be fetched from {where}: {_shorten_error(broken)}; {remedy}",
            code="langsmith-failed",
        ) from broken


def _shorten_error(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:300]


def _fetch_run(client: Any, id: str) -> Iterator[Found]:
    try:
        run = client.read_run(UUID(id))
    except ValueError as wrong:
        raise UserError(
            f"{id[:60]!r} is not the id of a LangSmith run",
            hint="it is a UUID, as in the run's URL",
            code="langsmith-failed",
        ) from wrong
    yield from build_sessions(_set_traces(_fetch_tree(client, run)), SOURCE)


def _fetch_project(client: Any, source: SessionSource, now: datetime) -> Iterator[Found]:
    """Yield the roots that match the filter, each with its children."""
    count = 0
    for root in client.list_runs(**_query(source, now)):
        if compute_duration_ms(root.start_time, root.end_time) < source.min_latency_ms:
            continue
        tree = list(_fetch_tree(client, root))
        if source.status == "warning" and not any(run.error for run in tree):
            continue
        yield from build_sessions(_set_traces(tree), SOURCE)
        count += 1
        if count >= source.limit:
            return


def _query(source: SessionSource, now: datetime) -> dict[str, Any]:
    """A warning is a trace that succeeded although one of its steps failed."""
    query: dict[str, Any] = {"project_name": source.project, "is_root": True}
    if source.status != "all":
        query["error"] = source.status == "error"
    back = parse_range(source.date_range)
    if back is not None:
        query["start_time"] = now.astimezone(UTC) - timedelta(seconds=back)
    if source.min_latency_ms:
        query["filter"] = f"gte(latency, {source.min_latency_ms / 1000:g})"
    return query


def _fetch_tree(client: Any, root: Any) -> Iterator[TraceStep]:
    """Yield the root with every run below it."""
    yield replace(_build_step(_to_map(root)), parent="")
    below: Iterable[Any] = client.list_runs(project_id=root.session_id, trace_id=root.trace_id, is_root=False)
    ids = {str(root.id)}
    for run in sorted(below, key=lambda run: run.dotted_order or ""):  # parents come before their children
        step = _build_step(_to_map(run))
        if step.id != str(root.id) and step.parent in ids:
            ids.add(step.id)
            yield step


def _to_map(run: Any) -> dict[str, Any]:
    """Return the client's run as an export writes it."""
    fields = {name: getattr(run, name) for name in _FIELDS}
    return {name: str(value) if isinstance(value, UUID) else value for name, value in fields.items()}
