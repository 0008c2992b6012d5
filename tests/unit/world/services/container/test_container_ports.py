"""Ports of a container as Unix sockets of ours."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from holdfast.errors import HarnessError
from holdfast.world.services.container.ports import ContainerPorts


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


def test_each_port_is_carried_with_its_half_closed_ends(tmp_path: Path) -> None:
    async def scene() -> None:
        ports = ContainerPorts(tmp_path, behind)
        await ports.open([80, 81])
        big = b"x" * 1_000_000
        assert await told(ports.get_socket_path(80), big) == b"80" + big
        assert await told(ports.get_socket_path(81), b"!") == b"81!"
        assert os.stat(ports.get_socket_path(80)).st_mode & 0o777 == 0o600
        await ports.close()

    asyncio.run(scene())


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
