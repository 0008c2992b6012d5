"""A kind of service from outside of the package: one file and an entry point, and everything knows it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from holdfast import plugins, service_kinds
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import ServiceSpec, WorldSpec
from holdfast.spec import check
from holdfast.spec.catalogue.json_schema import build_json_schema
from holdfast.world.service_planes import assign_addresses, build_variables
from holdfast.world.services import open_keeper
from reference import build_reference
from refused import refused

TRIAL = Trial("0", "contract", Scenario("calm"), Task(("?",)))
SPEC = """
version: 1
id: parrots
task: {prompt: p}
agent: {type: command, command: "true"}
invariants: {r: {check: {type: completes}}}
services:
"""
QUOTE = 'quote it: "1"'
FAR = {"url": "echo://there.example"}
CACHED = (
    plugins.find,
    plugins._list_entry_points,
    plugins._read_entry_points,
    service_kinds.find_by_image,
    service_kinds.find_by_url,
)


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As an installer leaves it: a file on the path, and the entry points of its distribution."""
    info = tmp_path / "site" / "echo-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: echo\nVersion: 1\n")
    points = ("echo = echo_plugin:Echo", "echoed = echo_plugin:EchoImage", "broken = echo_plugin:NoTraits")
    (info / "entry_points.txt").write_text("[holdfast.services]\n" + "\n".join(points[:2]) + "\n")
    (info / "broken.txt").write_text("[holdfast.services]\n" + points[2] + "\n")
    code = Path(__file__).with_name("echo_service.py").read_text()
    (tmp_path / "site" / "echo_plugin.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    forget()
    yield
    forget()


def forget() -> None:
    for cached in CACHED:
        cached.cache_clear()


def checked(tmp_path: Path, services: str) -> Any:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC + services)
    found = check(path, environ={})
    return found.spec, [problem for problem in found.problems if problem.severity == "error"]


def test_a_spec_may_ask_for_it_by_type(tmp_path: Path) -> None:
    spec, _ = checked(tmp_path, '  - {name: parrot, type: echo, prefix: "hi "}\n')
    assert spec.world.services == (ServiceSpec("parrot", "echo", settings={"prefix": "hi "}),)


def test_or_by_the_image_that_it_stands_in_for(tmp_path: Path) -> None:
    spec, _ = checked(tmp_path, "  - {name: parrot, image: acme/echo-server:2, env: {A: b}, prefix: x}\n")
    assert spec.world.services == (
        ServiceSpec("parrot", "echoed", "acme/echo-server:2", {"A": "b"}, settings={"prefix": "x"}),
    )


@pytest.mark.parametrize(
    ("service", "path", "message", "hint"),
    [
        ("{name: a, type: echo, prefx: x}", "services[0].prefx", "unknown key", "did you mean prefix?"),
        ("{name: a, type: echo, prefix: 1}", "services[0].prefix", "expected text, found the number 1", QUOTE),
        ("{name: a, type: echo, env: {A: b}}", "services[0].env", "is for type: container", ""),
        ("{name: a, type: http_mock, prefix: x}", "services[0].prefix", "is for type: echo", ""),
        ("{name: a, type: ecko}", "services[0].type",
         "expected one of container, echo, external, http_mock, found the text 'ecko'", "did you mean echo?"),
        ("{name: a, type: echoed}", "services[0].type",
         "expected one of container, echo, external, http_mock, found the text 'echoed'",
         "write image: echo-server instead"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_reported_with_its_place(
    tmp_path: Path, service: str, path: str, message: str, hint: str
) -> None:
    _, (problem,) = checked(tmp_path, f"  - {service}\n")
    assert (problem.path, problem.message, problem.hint) == (path, message, hint)


def test_the_schema_and_the_reference_have_its_keys() -> None:
    valid = jsonschema_rs.validator_for(build_json_schema()).is_valid
    assert valid(yaml.safe_load(SPEC + "  - {name: parrot, type: echo, prefix: x}\n"))
    assert not valid(yaml.safe_load(SPEC + "  - {name: parrot, type: echo, record: true}\n"))
    assert "| `prefix` | text |" in build_reference()


def test_the_agent_is_told_where_it_is() -> None:
    world = WorldSpec(services=(ServiceSpec("parrot", "echo"), ServiceSpec("far", "external", settings=FAR)))
    assert [address.ports for address in assign_addresses(world)] == [(7,), (80,)]
    reached = {"parrot": ("parrot", 7), "far": ("far", 7)}
    told = build_variables(world, reached, {"parrot": {"URL": "echo://{host}:{port}"}, "far": {"URL": "echo://x"}})
    assert told["PARROT_URL"] == told["ECHO_URL"] == "echo://parrot:7"


def test_one_elsewhere_has_its_port(tmp_path: Path) -> None:
    async def scene() -> Any:
        keeper = await open_keeper(ServiceSpec("far", "external", settings=FAR), tmp_path)
        return (await keeper.provide(TRIAL, alone=False)).upstream

    assert asyncio.run(scene()) == ("there.example", 7)


def test_it_serves_a_trial(tmp_path: Path) -> None:
    async def scene() -> bytes:
        spec = ServiceSpec("parrot", "echo", settings={"prefix": "you said "})
        keeper = await open_keeper(spec, tmp_path)
        service = await keeper.provide(TRIAL, alone=True)
        reader, writer = await asyncio.open_connection(*service.upstream)
        writer.write(b"hello\n")
        heard = await reader.read()
        writer.close()
        await service.close()
        await keeper.close()
        return heard

    assert asyncio.run(scene()) == b"you said hello\n"


def test_one_without_traits_is_an_error_that_names_it(tmp_path: Path) -> None:
    info = tmp_path / "site" / "echo-1.dist-info"
    (info / "broken.txt").rename(info / "entry_points.txt")
    forget()
    with refused("plugin-broken"):
        service_kinds.find("broken")
    _, (problem,) = checked(tmp_path, "  - {name: a, type: broken}\n")
    assert (problem.path, problem.code) == ("services[0].type", "broken-plugin")
