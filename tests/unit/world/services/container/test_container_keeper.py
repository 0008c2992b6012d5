"""What an engine is asked for when an image is run as a service."""

from __future__ import annotations

import asyncio
import os
import socket
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_words import Golden
from holdfast.errors import HarnessError, UserError
from holdfast.model.world import ServiceSpec
from holdfast.world.services import open_keeper
from holdfast.world.services.container.keeper import (
    ContainerPorts,
    build_options,
    format_note,
    select_client_env,
    write_env_file,
)
from holdfast.world.services.drivers import select_login_variables
from holdfast.world.supervisors import container as supervised
from refused import refused

SPEC = ServiceSpec("my_bus.1", "container", "kafka:3", {"TOKEN": "hush", "PEM": "a\nb"}, (9092, 9093))


def asked(words: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(words) if name == option]


def read(env: dict[str, str]) -> str:
    fd = write_env_file(env)
    try:
        return os.pread(fd, 1 << 20, 0).decode()
    finally:
        os.close(fd)


def test_a_container_has_no_network_no_ports_and_limits() -> None:
    words = build_options(SPEC, "n-1", "k=v", "/file")
    assert asked(words, "--network") == ["none"]
    assert not {"--publish", "-p", "--publish-all", "--privileged", "--rm"} & set(words)
    assert asked(words, "--pull") == ["never"]
    assert asked(words, "--name") == ["n-1"]
    assert "k=v" in asked(words, "--label")
    assert asked(words, "--pids-limit")
    assert asked(words, "--memory") == asked(words, "--memory-swap") != []
    assert "max-size=1m" in asked(words, "--log-opt")
    assert words[-1] == "kafka:3"


def test_its_name_is_a_host_name_that_it_finds() -> None:
    words = build_options(SPEC, "n", "k=v", "/file")
    assert asked(words, "--hostname") == ["my-bus-1"]
    assert asked(words, "--add-host") == ["my-bus-1:127.0.0.1"]


def test_no_value_is_on_the_command_line() -> None:
    words = build_options(SPEC, "n", "k=v", "/file")
    assert asked(words, "--env-file") == ["/file"]
    assert asked(words, "--env") == ["PEM"]
    assert not any("hush" in word or "a\nb" in word for word in words)
    assert read(SPEC.env) == "TOKEN=hush\n"
    assert select_client_env(SPEC.env) == {"PEM": "a\nb"}


@given(st.dictionaries(st.text("AB_#= 1", min_size=1, max_size=4), st.text(max_size=6)))
def test_every_variable_goes_one_way(env: dict[str, str]) -> None:
    lines = dict(line.split("=", 1) for line in read(env).split("\n") if line)
    assert lines | select_client_env(env) == env
    assert not lines.keys() & select_client_env(env).keys()
    assert not any(name.startswith(("#", " ")) for name in lines)


def test_a_long_value_goes_by_the_client_s_environment() -> None:
    assert select_client_env({"A": "x" * 70_000, "B": "x"}) == {"A": "x" * 70_000}


def test_the_report_names_the_image_that_was_used(golden: Golden) -> None:
    golden(format_note(SPEC, {"Id": "sha256:12"}))
    pulled = format_note(SPEC, {"Id": "sha256:12", "RepoDigests": ["kafka@sha256:34"]})
    assert pulled.endswith("kafka@sha256:34")


def test_only_who_logs_in_where_is_read_from_its_environment() -> None:
    env = {"POSTGRES_DB": "shop", "POSTGRES_INITDB_WALDIR": "/wal", "PGDATA": "/d"}
    assert select_login_variables(ServiceSpec("db", "postgres", "postgres:16", env), "POSTGRES").env == {
        "POSTGRES_DB": "shop"
    }


def test_what_no_local_server_can_be_is_looked_for_as_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*words: str) -> str:
        raise HarnessError("docker image: no such image")

    monkeypatch.setattr(supervised, "run_docker", refuse)
    spec = ServiceSpec("db", "postgres", "postgres:16", {"POSTGRES_INITDB_WALDIR": "/wal"})
    with refused("service-unavailable") as told:
        asyncio.run(open_keeper(spec, tmp_path, docker=True))
    assert told.value.hint.startswith("docker pull postgres:16, or ")
    with pytest.raises(UserError, match=r"does not support POSTGRES_INITDB_WALDIR$"):
        asyncio.run(open_keeper(spec, tmp_path))


# Ports of a container as Unix sockets of ours.


async def behind(port: int) -> socket.socket:
    """A connection to something that answers with its port and what it is told, once that ends."""
    if port == 1:
        raise ConnectionRefusedError
    if port == 2:
        raise HarnessError("gone")
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=theirs)

    async def answer() -> None:
        writer.write(str(port).encode() + await reader.read())
        writer.close()

    asyncio.get_running_loop().create_task(answer())
    ours.setblocking(False)
    return ours


async def told(path: str, data: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(data)
        writer.write_eof()
        return await reader.read()
    finally:
        writer.close()


async def test_each_port_is_carried_with_its_half_closed_ends(tmp_path: Path) -> None:
    ports = ContainerPorts(tmp_path, behind)
    await ports.open([80, 81])
    big = b"x" * 1_000_000
    assert await told(ports.get_socket_path(80), big) == b"80" + big
    assert await told(ports.get_socket_path(81), b"!") == b"81!"
    assert os.stat(ports.get_socket_path(80)).st_mode & 0o777 == 0o600
    await ports.close()


@pytest.mark.parametrize("port", [1, 2])
def test_a_port_that_nobody_listens_on_ends_the_connection(port: int, tmp_path: Path) -> None:
    async def scene() -> bytes:
        ports = ContainerPorts(tmp_path, behind)
        await ports.open([port])
        try:
            return await told(ports.get_socket_path(port), b"")
        except OSError:
            return b""
        finally:
            await ports.close()

    assert asyncio.run(scene()) == b""


def test_closing_ends_what_is_open(tmp_path: Path) -> None:
    async def scene() -> bytes:
        ports = ContainerPorts(tmp_path, behind)
        await ports.open([80])
        reader, writer = await asyncio.open_unix_connection(ports.get_socket_path(80))
        await asyncio.sleep(0.05)
        await ports.close()
        try:
            return await asyncio.wait_for(reader.read(), 5)
        finally:
            writer.close()

    assert asyncio.run(scene()) in (b"", b"80")
