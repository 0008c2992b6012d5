"""What a spec asks for and cannot have is told, key by key."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from holdfast import plugins
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.world import (
    AuditSettings,
    Determinism,
    Forbidden,
    Ingress,
    IngressPort,
    Isolation,
    Network,
    Resources,
    ServiceSpec,
    Setup,
    WorldSpec,
)
from holdfast.world import site_worlds as asked
from holdfast.world.site_worlds import refuse_lacking, select_lacking
from refused import refused


def opened(backend):
    return SimpleNamespace(name=backend, traits=plugins.find("sandboxes", backend).traits)


def found(spec, backend="bubblewrap", scenarios=()):
    return asyncio.run(asked.list_unsupported(spec, scenarios, opened(backend)))


def features(spec, backend="bubblewrap", scenarios=()):
    assert not any(one.enforced or not one.why for one in found(spec, backend, scenarios))
    return [one.feature for one in found(spec, backend, scenarios)]


def test_a_world_that_asks_for_nothing_special_lacks_nothing():
    assert features(WorldSpec()) == []
    assert features(WorldSpec(), "process") == []


@pytest.mark.parametrize(
    ("spec", "feature"),
    [
        (WorldSpec(base="python:3.12"), "base"),
        (WorldSpec(setup=Setup(packages=("jq",))), "setup.packages"),
        (WorldSpec(determinism=Determinism(dns="real")), "determinism.dns"),
    ],
)
def test_what_no_backend_without_images_can_do(spec, feature):
    assert features(spec) == features(spec, "process") == [feature]


@pytest.mark.parametrize(
    ("path", "backend", "shown", "lacks"),
    [
        ("/app", "bubblewrap", (), False),
        ("/app", "docker", ("/application/bin",), False),
        ("/app", "process", (), True),
        ("/app", "bubblewrap", ("/app/.venv",), True),
        ("/root", "docker", ("/root/.local/bin/tool",), True),
        ("/srv/work", "bubblewrap", ("/srv",), True),
    ],
)
def test_a_second_path_of_the_workspace_that_is_taken(path, backend, shown, lacks):
    spec = WorldSpec(setup=Setup(workdir=path))
    found = asyncio.run(asked.list_unsupported(spec, (), opened(backend), visible=shown))
    assert [one.feature for one in found] == (["setup.workdir"] if lacks else [])


def test_ways_in_lack_what_the_backend_cannot_do():
    assert features(WorldSpec(network=Network(ingress=Ingress("allow")))) == ["network.ingress"]
    assert features(
        WorldSpec(network=Network(ingress=Ingress(allow=(IngressPort(from_="host", to_port=3000),)))), "process"
    ) == ["network.ingress"]


def test_an_image_is_not_a_lack_where_images_run():
    assert features(WorldSpec(base="python:3.12"), "docker") == []


def test_without_a_network_of_its_own_there_are_no_names():
    spec = WorldSpec(
        services=(ServiceSpec("db", "postgres"),),
        network=Network(dns_overrides={"api.x.test": "db"}),
        forbidden=Forbidden(http_except=("db",)),
    )
    assert features(spec) == []
    assert features(spec, "process") == ["service names", "http audit", "network.dns_overrides"]


def test_a_clock_that_cannot_be_had_is_reported_if_it_is_asked_for(monkeypatch):
    async def none():
        return Isolation("clock", False, "there is no compiler")

    monkeypatch.setattr(asked, "find_clock_library", none)
    storm = Scenario("s", (Injection("world", "*", "skew"),))
    assert features(WorldSpec()) == features(WorldSpec(), scenarios=(Scenario("calm"),)) == []
    assert features(WorldSpec(determinism=Determinism(clock="2026-01-01"))) == ["clock"]
    assert features(WorldSpec(), scenarios=(storm,)) == ["clock"]


@pytest.mark.parametrize(
    ("backend", "lacks"), [("docker", ["agent.nested_sandbox", "agent.programs"]), ("bubblewrap", [])]
)
def test_a_container_has_neither_sandboxes_nor_programs_of_this_machine(backend, lacks):
    agent = AgentSpec("command", command="agent", programs=("pytest",), nested_sandbox=True)
    told = asyncio.run(asked.list_unsupported(WorldSpec(), (), opened(backend), agent=agent))
    assert [one.feature for one in told] == lacks


# What a strict user is refused: promises that are not kept, of those that were asked for.


MACHINE = (Isolation("network", True), Isolation("cpu limit", False, "no cgroup"), Isolation("ipc", False, "shared"))


def test_a_limit_that_nobody_set_is_not_lacking() -> None:
    assert [one.feature for one in select_lacking(WorldSpec(), MACHINE)] == ["ipc"]
    asked = WorldSpec(resources=Resources(cpu=2))
    assert [one.feature for one in select_lacking(asked, MACHINE)] == ["cpu limit", "ipc"]


@pytest.mark.parametrize("audit", [AuditSettings(file_writes=True), AuditSettings(file_writes=False)])
def test_a_log_that_nobody_wants_is_not_lacking(audit: AuditSettings) -> None:
    unseen = (Isolation("file audit", False, "not seen"),)
    assert bool(select_lacking(WorldSpec(audit=audit), unseen)) is audit.file_writes


def test_the_refusal_names_all_of_it_and_the_backend() -> None:
    with refused("world-not-enforced"):
        refuse_lacking(WorldSpec(resources=Resources(cpu=2)), MACHINE, "process")
    refuse_lacking(WorldSpec(), MACHINE[:2], "process")
