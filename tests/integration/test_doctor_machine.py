"""The doctor's machine part: every route is tried by a real call, and what does not work is said with a fix."""

import asyncio
import os
import sys

import pytest
from msgspec.structs import replace

from holdfast.doctor import machine as doctor_machine
from holdfast.doctor.clients import _try, try_curl
from holdfast.doctor.machine import (
    FORKS,
    HTTP,
    HTTPS,
    MCP,
    ROUTES,
    SANDBOX,
    list_required_routes,
    try_machine,
    try_route,
)
from holdfast.doctor.probe_site import Absent, Unmet, open_site, start_program
from holdfast.execute.resolved_spec import ModelOptions
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.world import WorldSpec

FORMATS = {"openai chat", "openai responses", "anthropic messages", "gemini", "ollama"}


def children() -> set[str]:
    with open(f"/proc/self/task/{os.getpid()}/children") as found:
        return set(found.read().split())


def test_every_route_of_ours_is_proven_and_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = children()  # other tests of this process may keep a server for their file
    found = asyncio.run(try_machine(os.environ, list_required_routes(None, ModelOptions())))
    assert [one.route for one in found] == [*ROUTES]
    ours = {one.route: (one.outcome, one.detail) for one in found if one.exit_code}
    assert set(ours) == FORMATS | {HTTP, HTTPS, MCP, FORKS, SANDBOX}
    assert {outcome for outcome, _ in ours.values()} == {"ok"}, ours
    assert list(tmp_path.iterdir()) == []
    assert children() <= before


def attempted(argv, **environ):
    async def main():
        async with open_site({**os.environ, **environ}) as probe_site:
            return await try_route(probe_site, "it", lambda probe_site: _try(probe_site, "it", argv, "it"), 3)

    return asyncio.run(main())


def test_a_program_that_bypasses_the_proxy_is_reported():
    found = attempted([sys.executable, "-c", "print('hello')"])
    assert (found.outcome, found.code) == ("not", "proxy-bypassed")
    assert found.detail.endswith(": hello")
    assert "HTTPS_PROXY" in found.fix


def test_a_program_that_rejects_the_certificate_is_reported():
    code = (
        "import ssl, sys, urllib.request\n"
        "strict = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)\n"
        "urllib.request.urlopen(sys.argv[1], context=strict)"
    )
    found = attempted([sys.executable, "-c", code])
    assert (found.outcome, found.code) == ("not", "certificate-refused")
    assert "SSL_CERT_FILE" in found.fix


def test_a_program_that_does_not_see_the_fault_proves_nothing():
    code = (
        "import sys, urllib.request, urllib.error\ntry: urllib.request.urlopen(sys.argv[1])\nexcept OSError: print(200)"
    )
    found = attempted([sys.executable, "-c", code])
    assert (found.outcome, found.code) == ("not", "fault-not-met")
    assert found.detail.endswith(": 200")


def test_a_client_that_is_not_installed_is_absent():
    async def main():
        async with open_site({**os.environ, "PATH": "/nowhere"}) as probe_site:
            return await try_route(probe_site, "curl", try_curl, 3)

    found = asyncio.run(main())
    assert (found.outcome, found.code, found.broken) == ("n/a", "route-absent", False)


async def _sleep(probe_site):
    await asyncio.sleep(60)


async def _unmet(probe_site):
    raise Unmet("not met", "fix it")


async def _absent(probe_site):
    raise Absent("not here")


async def _bug(probe_site):
    raise KeyError("odd")


@pytest.mark.parametrize(
    ("attempt", "outcome", "code"),
    [
        (_sleep, "not", "route-timeout"),
        (_unmet, "not", "fault-not-met"),
        (_absent, "n/a", "route-absent"),
        (_bug, "not", "route-failed"),
    ],
)
def test_whatever_goes_wrong_on_a_route_is_a_finding_with_a_fix(attempt, outcome, code, monkeypatch):
    monkeypatch.setattr(doctor_machine, "LIMIT_S", 0.05)
    found = asyncio.run(try_route(None, "it", attempt, 3))
    assert (found.outcome, found.code) == (outcome, code)
    assert bool(found.fix) == (outcome == "not")


def test_a_broken_route_that_nothing_needs_costs_nothing():
    found = asyncio.run(try_route(None, "it", _unmet, 0))
    assert (found.outcome, found.broken) == ("not", False)


def test_a_folder_that_cannot_be_written_is_one_finding(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    (found,) = asyncio.run(try_machine(os.environ, FORMATS))
    assert (found.outcome, found.code, found.exit_code) == ("not", "loopback-closed", 3)
    assert "TMPDIR" in found.fix


def test_a_program_is_ended_with_all_that_it_started(tmp_path):
    mark = tmp_path / "mark"
    code = f"import subprocess, sys; subprocess.Popen(['sh', '-c', 'sleep 1; touch {mark}']); print('up', flush=True)"

    async def main():
        async with start_program([sys.executable, "-c", code], os.environ) as process:
            await process.stdout.readline()
        await asyncio.sleep(1.3)

    asyncio.run(main())
    assert not mark.exists()


def spec(agent, *faults):
    return Spec("spec.yaml", agent, scenarios=(Scenario("storm", faults),))


LAUNCHED = AgentSpec(type="command", command="true")
PYTHON = AgentSpec(type="python", endpoint="agent:ask")
MODEL = Injection("llm", "*", "empty")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, FORMATS | {HTTP, HTTPS, MCP, FORKS, SANDBOX}),
        (spec(LAUNCHED, MODEL), FORMATS),
        (spec(LAUNCHED, Injection("http", "https://a.example/*", "down")), FORMATS | {HTTPS}),
        (spec(LAUNCHED, Injection("tool", "*", "error", match_url="http://a.example/*")), FORMATS | {HTTP}),
        (spec(LAUNCHED, Injection("http", "*.example.com", "down")), FORMATS | {HTTP, HTTPS}),
        (spec(AgentSpec(type="command", command="true", mcp_config={"mcpServers": {}}), MODEL), FORMATS | {MCP}),
        (spec(PYTHON, MODEL), FORMATS | {FORKS}),
        (spec(AgentSpec(type="python", endpoint="agent:ask", isolation="worker"), MODEL), FORMATS),
        (spec(PYTHON, Injection("tool", "search", "error")), set()),
        (spec(AgentSpec(endpoint="http://localhost/")), set()),
        (replace(spec(LAUNCHED, MODEL), world=WorldSpec()), FORMATS | {SANDBOX}),
        (replace(spec(PYTHON, Injection("tool", "search", "error")), world=WorldSpec()), {SANDBOX}),
    ],
)
def test_needed_is_what_the_faults_of_the_spec_depend_on(given, wanted):
    routes = list_required_routes(given, ModelOptions())
    assert {name for name in ROUTES if name in routes} == wanted
