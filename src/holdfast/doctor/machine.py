"""The machine's part of a diagnosis: tries every route with a real call and a fault."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Container, Mapping
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

from holdfast.doctor.clients import FIX, FORMATS, try_curl, try_format, try_http, try_node, try_python
from holdfast.doctor.probe_site import LIMIT_S, Absent, ProbeSite, Unmet, build_context, open_site, start_program
from holdfast.errors import HarnessError, UserError
from holdfast.execute.boxed_worlds import build_environ, find_backend, list_interpreter_paths, make_sandbox_note
from holdfast.execute.plane_needs import needs_planes
from holdfast.execute.resolved_spec import DEFAULT_WORLD, ModelOptions
from holdfast.model.scenario import Injection, Schedule
from holdfast.model.spec import Spec
from holdfast.planes.describe import format_exception
from holdfast.processes import scratch
from holdfast.protocols.sandbox import CommandResult, SandboxBackend, SandboxSpec
from holdfast.report.terminal.diagnosis import Attempt, DoctorFinding

_RELAY_FIX = (
    "the relay runs in Holdfast's interpreter and must be able to connect to 127.0.0.1; check for a sandbox around it"
)
_FAULT = Injection("tool", "echo", "error", {"message": "met"}, Schedule(on_call=2))


async def try_stdio(probe_site: ProbeSite) -> str:
    """Call a tool twice: the first call must pass, the second must meet its fault."""
    async with probe_site.open_trial("mcp", _FAULT) as (environ, context):
        config = json.loads(Path(environ["HOLDFAST_MCP_CONFIG"]).read_text("utf-8"))
        entry = config["mcpServers"]["doctor"]
        async with start_program([entry["command"], *entry["args"]], entry["env"]) as server:
            await _ask(server, 1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
            passed = await _ask(server, 2, "tools/call", {"name": "echo", "arguments": {"word": "passed"}})
            broken = await _ask(server, 3, "tools/call", {"name": "echo", "arguments": {"word": "broken"}})
    if "passed" not in passed["content"][0]["text"]:
        raise Unmet(f"an untouched result arrived as {passed}", _RELAY_FIX)
    if not broken.get("isError") or [met.plane for met in context.injector.ledger] != ["mcp"]:
        raise Unmet(f"instead of the fault, {broken} arrived", _RELAY_FIX)
    return "through the relay: one call passed, one met its fault"


async def _ask(server: asyncio.subprocess.Process, number: int, method: str, params: dict[str, Any]) -> Any:
    assert server.stdin is not None
    assert server.stdout is not None
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    server.stdin.write(json.dumps(request).encode() + b"\n")
    await server.stdin.drain()
    line = await server.stdout.readline()
    if not line:
        _, err = await server.communicate()
        raise Unmet(f"the relay ended: {err.decode('utf-8', 'replace').strip()[-300:]}", _RELAY_FIX)
    answer = json.loads(line)
    if "result" not in answer:
        raise Unmet(f"{method} was answered by {line.decode('utf-8', 'replace')[:300]}", _RELAY_FIX)
    return answer["result"]


_IMPORT = "import holdfast.agents.python.host"
"""The first import of a Python agent's process in a sandbox."""
_SANDBOX_FIX = (
    "install Holdfast in its own virtual environment (python3 -m venv), in a folder that other users may read; "
    "or use --backend process (no isolation)"
)


async def try_sandbox(probe_site: ProbeSite) -> str:
    """Start Holdfast in a sandbox with the usual mounts, to find an unreadable folder before a run does."""
    with scratch.open_folder("doctor-sandbox") as folder:
        try:
            backend = await find_backend(DEFAULT_WORLD.backend).open_backend(folder, None)
            try:
                ran = await _run_python(backend)
            finally:
                await backend.close()
        except UserError as refused:
            raise Unmet(str(refused), refused.hint or _SANDBOX_FIX, code="sandbox-broken") from refused
        except (HarnessError, OSError) as broken:
            raise Unmet(str(broken), _SANDBOX_FIX, code="sandbox-broken") from broken
    if ran.timed_out or ran.exit_code != 0:
        lines = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        why = "timeout" if ran.timed_out else lines[-1] if lines else f"exit code {ran.exit_code}"
        raise Unmet(f"{sys.executable} cannot run Holdfast in a sandbox: {why}", _SANDBOX_FIX, code="sandbox-broken")
    return f"this Python and Holdfast start in it; {make_sandbox_note(backend)}"


async def _run_python(backend: SandboxBackend) -> CommandResult:
    sandbox = await backend.open(SandboxSpec("doctor", visible=list_interpreter_paths()))
    try:
        return await sandbox.run([sys.executable, "-P", "-c", _IMPORT], build_environ(), timeout_s=LIMIT_S / 2)
    finally:
        await sandbox.close()


_PROC_FIX = "mount /proc so that processes of the same user can be seen, or use agent.isolation: worker"

_FORKS = """
import http.client, os, sys
from urllib.parse import urlsplit
url = urlsplit(sys.argv[1])
for name in ("stormy", "calm"):
    pid = os.fork()
    if not pid:
        os.read(0, 1)
        line = http.client.HTTPConnection(url.netloc, timeout=10)
        line.request("POST", url.path, '{"model": "doctor", "messages": [{"role": "user", "content": "Count."}]}')
        os.write(1, b"%s %d\\n" % (name.encode(), line.getresponse().status))
        os._exit(0)
    os.write(1, b"%d\\n" % pid)
os.wait(), os.wait()
"""


async def try_forks(probe_site: ProbeSite) -> str:
    """Fork two processes that share an address; only the one with a fault on its model may meet it."""
    if sys.platform != "linux":
        raise Absent("not on this system: each trial starts a new Python interpreter")
    # Both children use one address and one token, so a request alone does not tell whose it is. Holdfast looks up the
    # process behind a connection in /proc, which a container may hide.
    stormy, calm = build_context("stormy", Injection("llm", "*", "rate_limit")), build_context("calm")
    shared_address = await probe_site.site_planes.open_shared_address()
    try:
        url = f"{shared_address.environ['OPENAI_BASE_URL']}/chat/completions"
        with shared_address.serve_trial(stormy) as first, shared_address.serve_trial(calm) as second:
            async with start_program([sys.executable, "-I", "-S", "-c", _FORKS, url], probe_site.environ) as process:
                first(int(await _read_line(process)))
                second(int(await _read_line(process)))
                assert process.stdin is not None
                process.stdin.write(b"go")
                await process.stdin.drain()
                lines = {await _read_line(process), await _read_line(process)}
    finally:
        await shared_address.close()
    if (
        lines != {"stormy 429", "calm 200"}
        or [met.mode for met in stormy.injector.ledger] != ["rate_limit"]
        or calm.injector.ledger
    ):
        raise Unmet(f"two forked processes could not be distinguished: {', '.join(sorted(lines))}", _PROC_FIX)
    return "two processes at one address: only the one with a fault met it"


async def _read_line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode().strip()
    if not line:
        _, err = await process.communicate()
        raise Unmet(f"a forked process ended: {err.decode('utf-8', 'replace').strip()[-300:]}", _PROC_FIX)
    return line


HTTP, HTTPS, MCP, FORKS = "http", "https by python", "mcp over stdio", "forked processes"
SANDBOX = "sandbox"


AttemptRoute: TypeAlias = Callable[[ProbeSite], Awaitable[str]]
"""Tries one way to see calls; returns a description, or raises Unmet or Absent."""

ROUTES: Mapping[str, AttemptRoute] = {
    **{kind.name: partial(try_format, kind=kind) for kind in FORMATS},
    HTTP: try_http,
    HTTPS: try_python,
    "https by curl": try_curl,
    "https by node fetch": partial(try_node, way="fetch"),
    "https by node agent": partial(try_node, way="agent"),
    MCP: try_stdio,
    FORKS: try_forks,
    SANDBOX: try_sandbox,
}
_OURS = frozenset({*[kind.name for kind in FORMATS], HTTP, HTTPS, MCP, FORKS, SANDBOX})
"""The routes needed if no spec is known; not every agent uses curl or Node."""

_IDLE = "nothing here is known to need it"


def list_required_routes(spec: Spec | None, models: ModelOptions) -> Container[str]:
    """Return the routes that this agent's faults and its world depend on."""
    if spec is None:
        return _OURS
    boxed = () if spec.world is None else (SANDBOX,)
    if not needs_planes(spec, models):
        return boxed
    faults = [fault for scenario in spec.scenarios for fault in scenario.injections]
    urls = [url for f in faults if (url := f.target if f.plane == "http" else f.match_url) is not None]
    wanted = {
        HTTP: any(not url.startswith("https:") for url in urls),
        HTTPS: any(not url.startswith("http:") for url in urls),
        MCP: spec.agent.mcp_config is not None,
        FORKS: spec.agent.is_python and spec.agent.isolation == "fresh",
    }
    return {*boxed, *[kind.name for kind in FORMATS], *[name for name, true in wanted.items() if true]}


async def try_machine(environ: Mapping[str, str], wanted: Container[str]) -> tuple[DoctorFinding, ...]:
    """Try all routes, two in parallel, and return them in a fixed order; `wanted` are the routes in use."""
    # Two at a time: more would make each route slow on a small machine, and a slow route looks broken.
    slots = asyncio.Semaphore(2)

    async def try_in_turn(probe_site: ProbeSite, name: str, attempt: AttemptRoute) -> DoctorFinding:
        async with slots:
            return await try_route(probe_site, name, attempt, 3 if name in wanted else 0)

    try:
        async with open_site(environ) as probe_site:
            return tuple(await asyncio.gather(*[try_in_turn(probe_site, *route) for route in ROUTES.items()]))
    except OSError as broken:
        fix = "make the temporary folder writable (TMPDIR), and allow programs to listen on 127.0.0.1"
        why = f"the planes cannot be opened: {format_exception(broken)}"
        return (DoctorFinding("loopback", "not", "loopback-closed", why, fix, 3),)


async def try_route(probe_site: ProbeSite, name: str, attempt: AttemptRoute, exit_code: int) -> DoctorFinding:
    """Try one route. Any exception becomes a finding; `exit_code` is 0 if nothing depends on the route."""
    began, fix = perf_counter(), FIX
    word: Attempt = "not"
    try:
        async with asyncio.timeout(LIMIT_S):
            detail = await attempt(probe_site)
        word, code, fix = "ok", "route-works", ""
    except Absent as absent:
        return DoctorFinding(name, "n/a", "route-absent", str(absent))
    except Unmet as unmet:
        code, detail, fix = unmet.code, str(unmet), unmet.fix or FIX
    except TimeoutError:
        code, detail = "route-timeout", f"not finished within {LIMIT_S:g} s"
    except Exception as error:
        # A route that fails in an unexpected way is still a broken route, not a crash of the doctor.
        code, detail = "route-failed", format_exception(error)
    if word == "not" and not exit_code:
        detail += f" ({_IDLE})"
    took_ms = (perf_counter() - began) * 1000
    return DoctorFinding(name, word, code, detail, fix, exit_code, took_ms)
