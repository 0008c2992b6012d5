"""The machine's part of a diagnosis: every route, tried with a real call and a fault on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping
from functools import partial
from time import perf_counter

from msgspec import Struct

from holdfast.doctor.clients import try_curl, try_http, try_node, try_python
from holdfast.doctor.forks import try_forks
from holdfast.doctor.formats import FIX, FORMATS, try_format
from holdfast.doctor.mcp import try_stdio
from holdfast.doctor.probe_site import LIMIT_S, Absent, ProbeSite, Unmet, opened
from holdfast.doctor.sandbox import try_sandbox
from holdfast.execute.options import ModelOptions
from holdfast.execute.plane_needs import needs_planes
from holdfast.model.spec import Spec
from holdfast.planes.describe import said
from holdfast.report.diagnosis import DoctorFinding

HTTP, HTTPS, MCP, FORKS = "http", "https by python", "mcp over stdio", "forked processes"
SANDBOX = "sandbox"


class MachineRoute(Struct, frozen=True):
    """One way to meet calls. Its trial gives words for what was seen; Unmet or Absent where there is nothing."""

    name: str
    attempt: Callable[[ProbeSite], Awaitable[str]]


ROUTES = (
    *[MachineRoute(kind.name, partial(try_format, kind=kind)) for kind in FORMATS],
    MachineRoute(HTTP, try_http),
    MachineRoute(HTTPS, try_python),
    MachineRoute("https by curl", try_curl),
    MachineRoute("https by node fetch", partial(try_node, way="fetch")),
    MachineRoute("https by node agent", partial(try_node, way="agent")),
    MachineRoute(MCP, try_stdio),
    MachineRoute(FORKS, try_forks),
    MachineRoute(SANDBOX, try_sandbox),
)
_OURS = frozenset({*[kind.name for kind in FORMATS], HTTP, HTTPS, MCP, FORKS, SANDBOX})
"""Needed where nothing is known of an agent; whether it uses curl or node is its own affair."""

_IDLE = "nothing here is known to need it"


def needed(spec: Spec | None, models: ModelOptions) -> Container[str]:
    """The routes that this agent's faults and its world depend on."""
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
        FORKS: spec.agent.in_python and spec.agent.isolation == "fresh",
    }
    return {*boxed, *[kind.name for kind in FORMATS], *[name for name, true in wanted.items() if true]}


async def try_machine(environ: Mapping[str, str], wanted: Container[str]) -> tuple[DoctorFinding, ...]:
    """All routes, two at a time, in a fixed order. `wanted` are those that something depends on."""
    slots = asyncio.Semaphore(2)

    async def one(probe_site: ProbeSite, route: MachineRoute) -> DoctorFinding:
        async with slots:
            return await tried(probe_site, route, 3 if route.name in wanted else 0)

    try:
        async with opened(environ) as probe_site:
            return tuple(await asyncio.gather(*[one(probe_site, route) for route in ROUTES]))
    except OSError as broken:
        fix = "a temporary folder must be writable (TMPDIR), and ports on 127.0.0.1 must be free to take"
        return (DoctorFinding("loopback", "not", f"the planes cannot be opened: {said(broken)}", fix, 3),)


async def tried(probe_site: ProbeSite, route: MachineRoute, code: int) -> DoctorFinding:
    """One route; whatever goes wrong on it is what was found."""
    began = perf_counter()

    def found(broken: bool, detail: str, fix: str = "") -> DoctorFinding:
        detail += f" ({_IDLE})" if broken and not code else ""
        return DoctorFinding(route.name, "not" if broken else "ok", detail, fix, code, (perf_counter() - began) * 1000)

    try:
        async with asyncio.timeout(LIMIT_S):
            return found(False, await route.attempt(probe_site))
    except Absent as absent:
        return DoctorFinding(route.name, "n/a", str(absent))
    except Unmet as unmet:
        return found(True, str(unmet), unmet.fix or FIX)
    except TimeoutError:
        return found(True, f"no end within {LIMIT_S:g} s", FIX)
    except Exception as broken:  # a route that breaks in a new way is broken all the same
        return found(True, said(broken), FIX)
