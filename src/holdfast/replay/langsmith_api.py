"""LangSmith's API through its own client: one run, or the traces of a project."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from holdfast.errors import HarnessError, UserError
from holdfast.model.session import SessionSource
from holdfast.replay.foreign_json import lasted_ms, seconds
from holdfast.replay.foreign_trace import Found, LeftOutTrace
from holdfast.replay.langsmith_runs import LangSmithRun, sessions_of
from holdfast.replay.stored_run import SessionsFound
from holdfast.spec.session_forms import range_seconds

KEYS = ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
ENDPOINTS = ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT")
_WAIT_MS = (5_000, 60_000)


def fetched(source: SessionSource, environ: Mapping[str, str], now: datetime) -> SessionsFound:
    """The sessions of a source. HarnessError if it cannot be reached, UserError if it refuses or has no such run."""
    client = _client(environ)
    with _told(source, environ), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client's own deprecations
        found = list(_one(client, source.run) if source.run else _project(client, source, now))
    return SessionsFound(
        tuple(one for one in found if not isinstance(one, LeftOutTrace)),
        tuple(one for one in found if isinstance(one, LeftOutTrace)),
    )


def _client(environ: Mapping[str, str]) -> Any:
    key = next((environ[name] for name in KEYS if environ.get(name)), "")
    if not key:
        raise UserError("LangSmith needs a key: LANGSMITH_API_KEY is not set", hint="export LANGSMITH_API_KEY=…")
    try:
        from langsmith import Client
        from urllib3.util import Retry
    except ImportError as missing:
        raise UserError("LangSmith needs its client", hint="pip install 'holdfast[langsmith]'") from missing
    url = next((environ[name] for name in ENDPOINTS if environ.get(name)), None)
    return Client(
        api_url=url, api_key=key, timeout_ms=_WAIT_MS, retry_config=Retry(total=1, backoff_factor=0.2),
        auto_batch_tracing=False,
    )  # fmt: skip


@contextmanager
def _told(source: SessionSource, environ: Mapping[str, str]) -> Iterator[None]:
    """What the client raises, as whose doing it is."""
    from langsmith import utils
    from requests import RequestException

    where = next((environ[name] for name in ENDPOINTS if environ.get(name)), "its usual address")
    try:
        yield
    except utils.LangSmithNotFoundError as absent:
        raise UserError(
            f"{source.words}: there is none at {where}", hint="check the name, and whose key it is"
        ) from absent
    except utils.LangSmithAuthError as refused:
        raise UserError(f"{source.words}: {where} refuses the key", hint="check LANGSMITH_API_KEY") from refused
    except utils.LangSmithUserError as wrong:
        raise UserError(f"{source.words}: {_short(wrong)}") from wrong
    except (utils.LangSmithError, RequestException, OSError, ValueError) as broken:
        way_out = "check LANGSMITH_ENDPOINT and the network, or replay the sessions that were imported before"
        raise HarnessError(f"{source.words} cannot be fetched from {where}: {_short(broken)}; {way_out}") from broken


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:300]


def _one(client: Any, id: str) -> Iterator[Found]:
    try:
        run = client.read_run(UUID(id))
    except ValueError as wrong:
        raise UserError(f"{id[:60]!r} is no id of a LangSmith run", hint="it is a UUID, as in the run's URL") from wrong
    yield from sessions_of(_tree(client, run))


def _project(client: Any, source: SessionSource, now: datetime) -> Iterator[Found]:
    """Roots that fit the filter, each with what lies below it."""
    taken = 0
    for root in client.list_runs(**_query(source, now)):
        if lasted_ms(root.start_time, root.end_time) < source.min_latency_ms:
            continue
        tree = list(_tree(client, root))
        if source.status == "warning" and not any(run.error for run in tree):
            continue
        yield from sessions_of(tree)
        taken += 1
        if taken >= source.limit:
            return


def _query(source: SessionSource, now: datetime) -> dict[str, Any]:
    """A warning is a trace that ended well though a step of it failed."""
    asked: dict[str, Any] = {"project_name": source.project, "is_root": True}
    if source.status != "all":
        asked["error"] = source.status == "error"
    back = range_seconds(source.date_range)
    if back is not None:
        asked["start_time"] = now.astimezone(UTC) - timedelta(seconds=back)
    if source.min_latency_ms:
        asked["filter"] = f"gte(latency, {source.min_latency_ms / 1000:g})"
    return asked


def _tree(client: Any, root: Any) -> Iterator[LangSmithRun]:
    """The root with every run below it."""
    yield _run(root, is_root=True)
    below: Iterable[Any] = client.list_runs(project_id=root.session_id, trace_id=root.trace_id, is_root=False)
    own = str(root.id)
    kept = {own}
    waiting = [_run(one) for one in sorted(below, key=lambda one: one.dotted_order or "")]
    for run in waiting:  # parents come before their children in the dotted order
        if run.id != own and run.parent in kept:
            kept.add(run.id)
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
