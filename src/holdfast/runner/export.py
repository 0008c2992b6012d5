"""Exports a run's traces to a file or to an OpenTelemetry collector."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from holdfast.errors import UsageError
from holdfast.report.formats.files import write_atomically
from holdfast.report.formats.otlp import build_requests
from holdfast.runner.outcome import RunOutcome

POST_S = 30.0
"""Seconds for one request to the collector."""
_TRACES = b'{"resourceSpans"'
"""The first bytes of a trace file that Holdfast wrote."""


def check_target(target: str) -> None:
    """Reject a target that is neither a file nor a URL, before anything runs."""
    if "://" in target and urlsplit(target).scheme not in ("http", "https"):
        raise UsageError(
            f"--otlp {target}: traces are sent by http or https only", code="usage", hint="give such a URL, or a file"
        )
    if "://" in target and not urlsplit(target).hostname:
        raise UsageError(f"--otlp {target}: there is no host in it", code="usage")
    if "://" not in target:
        check_writable("--otlp", Path(target))
        with suppress(FileNotFoundError), open(target, "rb") as file:
            head = file.read(64).strip()
            if head and not head.startswith(_TRACES):
                problem = f"--otlp {target}: the file exists and does not contain traces"
                raise UsageError(problem, code="file-unusable", hint="name another file")


def check_writable(option: str, path: Path) -> None:
    """Reject a file that cannot be written. Folders are not created: their name may be misspelt."""
    if path.is_dir():
        raise UsageError(f"{option} {path}: it is a folder", code="file-unusable", hint="name a file in it")
    if not path.parent.is_dir():
        raise UsageError(
            f"{option} {path}: no such folder: {path.parent}",
            code="file-unusable",
            hint="create it first, or name another folder",
        )


def export(outcome: RunOutcome, target: str, environ: Mapping[str, str]) -> str | None:
    """Write every trial's spans, one request per line, or send them; return why sending failed.

    A file that cannot be written raises.
    """
    bodies = build_requests(outcome.run, outcome.cells.read_traced())
    if "://" not in target:
        try:
            write_atomically(Path(target), (body + b"\n" for body in bodies))
        except OSError as refused:
            raise UsageError(f"cannot write {target}: {refused.strerror}", code="file-unusable") from refused
        return None
    parts = urlsplit(target)
    if parts.path in ("", "/"):  # a bare host
        target = parts._replace(path="/v1/traces").geturl()
    return asyncio.run(_send(target, bodies, {"Content-Type": "application/json", **_read_headers(environ)}))


async def _send(target: str, bodies: Iterator[bytes], headers: Mapping[str, str]) -> str | None:
    from holdfast.agents.http.request import read_url
    from holdfast.http1.client import UpstreamFailed, Upstreams

    try:
        url = read_url(target)
    except ValueError:
        return f"the traces could not be sent to {_strip_secrets(target)}: it is not a valid URL"
    upstreams = Upstreams()
    try:
        fields = [(name.encode(), value.encode()) for name, value in headers.items()]
        if url.authorization is not None:
            fields.append((b"Authorization", url.authorization.encode()))
        for body in bodies:
            async with asyncio.timeout(POST_S):
                reply = await upstreams.send("POST", url.address, fields, body, connect_s=POST_S, read_s=POST_S)
                answer = await reply.read()
            if reply.status >= 300:
                begin = answer[:200].decode("utf-8", "replace")
                return f"the collector at {_strip_secrets(target)} answered {reply.status} {begin}".rstrip()
    except (UpstreamFailed, TimeoutError, ValueError) as broken:
        return f"the traces could not be sent to {_strip_secrets(target)}: {str(broken) or type(broken).__name__}"
    finally:
        await upstreams.close()
    return None


def _strip_secrets(url: str) -> str:
    """Return the address without parts that may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _read_headers(environ: Mapping[str, str]) -> dict[str, str]:
    """Read OpenTelemetry's own variable: `name=value,name=value`, percent-encoded."""
    pairs = (pair.partition("=") for pair in environ.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(","))
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs if name.strip()}
