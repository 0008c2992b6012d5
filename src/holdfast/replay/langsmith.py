"""Converts LangSmith traces to sessions: runs from an export, or fetched with LangSmith's own client."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from msgspec import Struct

from holdfast.errors import HarnessError, UserError
from holdfast.model.session import SessionSource
from holdfast.replay.foreign_json import at, decoded, first, items, lasted_ms, seconds, text
from holdfast.replay.foreign_messages import content_text
from holdfast.replay.foreign_trace import ForeignTrace, Found, LeftOutTrace, ToolUse, session_of
from holdfast.replay.stored_run import SessionsFound
from holdfast.spec.sections.run import range_seconds

SOURCE = "langsmith"


class LangSmithRun(Struct, frozen=True):
    """One run from the API or an export."""

    id: str
    kind: str
    name: str = ""
    parent: str = ""
    trace: str = ""
    inputs: Any = None
    outputs: Any = None
    error: str = ""
    began: float = 0.0
    latency_ms: float = 0.0


def matches(document: Any) -> bool:
    """Whether this is a run, or a list of runs."""
    one = document[0] if isinstance(document, list) and document else document
    one = items(one, "runs")[0] if items(one, "runs") else one
    return isinstance(at(one, "run_type"), str)


def read(document: Any) -> Iterator[Found]:
    """A session for every trace among the runs."""
    listed = document if isinstance(document, list) else items(document, "runs") or [document]
    return sessions_of(run for one in listed for run in _flattened(one, ""))


def sessions_of(runs: Iterable[LangSmithRun]) -> Iterator[Found]:
    """A session for every root among the runs: one whose parent is missing."""
    known = {run.id: run for run in runs}
    below: defaultdict[str, list[LangSmithRun]] = defaultdict(list)
    for run in known.values():
        below[run.parent if run.parent in known else ""].append(run)
    for root in below[""]:
        yield session_of(_trace(root, below))


def _trace(root: LangSmithRun, below: dict[str, list[LangSmithRun]]) -> ForeignTrace:
    inner = list(_descendants(root, below))
    models = [one.inputs for one in sorted(inner, key=lambda run: run.began) if one.kind == "llm"]
    return ForeignTrace(
        id=root.id,
        asked=(root.inputs, *models[:1]),
        tools=tuple(_tool(run) for run in _outer_tools(root, below)),
        name=root.name,
        source=SOURCE,
        began=root.began or None,
        failure=root.error,
    )


def _descendants(root: LangSmithRun, below: dict[str, list[LangSmithRun]]) -> Iterator[LangSmithRun]:
    waiting = list(below.get(root.id, ()))
    while waiting:
        run = waiting.pop()
        yield run
        waiting += below.get(run.id, ())


def _outer_tools(root: LangSmithRun, below: dict[str, list[LangSmithRun]]) -> Iterator[LangSmithRun]:
    """Tools that the agent called; calls inside a tool do not count."""
    waiting = list(below.get(root.id, ()))
    while waiting:
        run = waiting.pop()
        if run.kind == "tool":
            yield run
        else:
            waiting += below.get(run.id, ())


def _tool(run: LangSmithRun) -> ToolUse:
    return ToolUse(run.name, _output(run.outputs), run.error, None, run.latency_ms, run.began)


def _output(outputs: Any) -> Any:
    """A tool's result: LangChain wraps it as `output`, and that in a message."""
    unwrapped = outputs["output"] if isinstance(outputs, dict) and set(outputs) == {"output"} else outputs
    inner = at(unwrapped, "kwargs") or unwrapped
    if isinstance(inner, dict) and "content" in inner and (inner.get("type") == "tool" or "tool_call_id" in inner):
        return decoded(content_text(inner["content"]))
    return decoded(unwrapped)


def _flattened(value: Any, parent: str) -> Iterator[LangSmithRun]:
    """A run and its children, which an export may nest."""
    waiting = [(value, parent)]
    while waiting:
        one, above = waiting.pop()
        id = text(one, "id")
        if not id:
            continue
        yield LangSmithRun(
            id=id,
            kind=text(one, "run_type"),
            name=text(one, "name"),
            parent=text(one, "parent_run_id") or above,
            trace=text(one, "trace_id"),
            inputs=first(one, "inputs"),
            outputs=at(one, "outputs"),
            error=text(one, "error"),
            began=seconds(at(one, "start_time")) or 0.0,
            latency_ms=lasted_ms(at(one, "start_time"), at(one, "end_time")),
        )
        waiting += [(child, id) for child in items(one, "child_runs")]


KEYS = ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
ENDPOINTS = ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT")
_WAIT_MS = (5_000, 60_000)


def fetched(source: SessionSource, environ: Mapping[str, str], now: datetime) -> SessionsFound:
    """The sessions of a source. HarnessError if it cannot be reached, UserError if it refuses or has no such run."""
    client = _client(environ)
    with _translate_errors(source, environ), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client's own deprecations
        runs = list(_one(client, source.run) if source.run else _project(client, source, now))
    return SessionsFound(
        tuple(one for one in runs if not isinstance(one, LeftOutTrace)),
        tuple(one for one in runs if isinstance(one, LeftOutTrace)),
    )


def _client(environ: Mapping[str, str]) -> Any:
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
        raise UserError(
            "LangSmith needs its client", hint="pip install 'holdfast[langsmith]'", code="extra-missing"
        ) from missing
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
            hint="check the name, and whose key it is",
            code="langsmith-failed",
        ) from absent
    except utils.LangSmithAuthError as refused:
        raise UserError(
            f"{source.words}: {where} refuses the key", hint="check LANGSMITH_API_KEY", code="langsmith-key"
        ) from refused
    except utils.LangSmithUserError as wrong:
        raise UserError(f"{source.words}: {_short(wrong)}", code="langsmith-failed") from wrong
    except (utils.LangSmithError, RequestException, OSError, ValueError) as broken:
        way_out = "check LANGSMITH_ENDPOINT and the network, or replay the sessions that were imported before"
        raise HarnessError(
            f"{source.words} cannot be fetched from {where}: {_short(broken)}; {way_out}", code="langsmith-failed"
        ) from broken


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:300]


def _one(client: Any, id: str) -> Iterator[Found]:
    try:
        run = client.read_run(UUID(id))
    except ValueError as wrong:
        raise UserError(
            f"{id[:60]!r} is not the id of a LangSmith run",
            hint="it is a UUID, as in the run's URL",
            code="langsmith-failed",
        ) from wrong
    yield from sessions_of(_tree(client, run))


def _project(client: Any, source: SessionSource, now: datetime) -> Iterator[Found]:
    """Roots that fit the filter, each with its children."""
    count = 0
    for root in client.list_runs(**_query(source, now)):
        if lasted_ms(root.start_time, root.end_time) < source.min_latency_ms:
            continue
        tree = list(_tree(client, root))
        if source.status == "warning" and not any(run.error for run in tree):
            continue
        yield from sessions_of(tree)
        count += 1
        if count >= source.limit:
            return


def _query(source: SessionSource, now: datetime) -> dict[str, Any]:
    """A warning is a trace that succeeded although one of its steps failed."""
    query: dict[str, Any] = {"project_name": source.project, "is_root": True}
    if source.status != "all":
        query["error"] = source.status == "error"
    back = range_seconds(source.date_range)
    if back is not None:
        query["start_time"] = now.astimezone(UTC) - timedelta(seconds=back)
    if source.min_latency_ms:
        query["filter"] = f"gte(latency, {source.min_latency_ms / 1000:g})"
    return query


def _tree(client: Any, root: Any) -> Iterator[LangSmithRun]:
    """The root with every run below it."""
    yield _run(root, is_root=True)
    below: Iterable[Any] = client.list_runs(project_id=root.session_id, trace_id=root.trace_id, is_root=False)
    own = str(root.id)
    ids = {own}
    waiting = [_run(one) for one in sorted(below, key=lambda one: one.dotted_order or "")]
    for run in waiting:  # parents come before their children in the dotted order
        if run.id != own and run.parent in ids:
            ids.add(run.id)
            yield run


def _run(run: Any, *, is_root: bool = False) -> LangSmithRun:
    return LangSmithRun(
        id=str(run.id),
        kind=run.run_type or "",
        name=run.name or "",
        parent="" if is_root or run.parent_run_id is None else str(run.parent_run_id),
        trace=str(run.trace_id),
        inputs=run.inputs,
        outputs=run.outputs,
        error=run.error or "",
        began=seconds(run.start_time) or 0.0,
        latency_ms=lasted_ms(run.start_time, run.end_time),
    )
