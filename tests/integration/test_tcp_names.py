"""A service's name that does not resolve, looked up by programs in a real sandbox."""

import asyncio

import pytest
from sandbox_kit import sandbox_in
from tcp_kit import place

from holdfast.planes.tcp.names import NSSWITCH_CONF, RESOLV_CONF, NamePlane
from holdfast.protocols.sandbox import SandboxSpec
from planes_kit import FakeContext

SERVER = ("127.0.1.53", 53)
LOOK = 'for i in 1 2 3; do getent hosts "$1" | cut -d" " -f1; echo "$?"; done'


async def looked_up(tmp_path, name, *injections):
    """What each of three look-ups inside printed, and the trial."""
    (tmp_path / "resolv.conf").write_text(RESOLV_CONF.format(host=SERVER[0]))
    (tmp_path / "nsswitch.conf").write_text(NSSWITCH_CONF)
    tmp_path.chmod(0o755)
    folder = tmp_path / "backend"
    folder.mkdir()
    context = FakeContext(injections)
    visible = {f"/etc/{name}": tmp_path / name for name in ("resolv.conf", "nsswitch.conf")}
    spec = SandboxSpec("t", listen=(SERVER,), visible=visible, hosts={"cache": "127.0.1.3"})
    async with sandbox_in(folder, spec) as sandbox:
        names = {"db": ("db", "127.0.1.2"), "db.services.internal": ("db", "127.0.1.2")}
        plane = await NamePlane(names, context).listen(sandbox.listener(*SERVER))
        try:
            env = {"PATH": "/usr/bin:/bin"}
            ran = await sandbox.run(["/bin/sh", "-c", LOOK, "sh", name], env, timeout_s=30)
        finally:
            await plane.close()
    lines = ran.stdout.decode().split("0\n")
    return [line.strip() for line in lines[:3]], context


def test_a_name_resolves_again_when_the_fault_has_healed(tmp_path):
    found, context = asyncio.run(looked_up(tmp_path, "db", place("db", "dns_failure", times=2)))
    assert found == ["", "", "127.0.1.2"]
    assert [(entry.mode, entry.call, entry.effect) for entry in context.ledger] == [
        ("dns_failure", 1, "met"),
        ("dns_failure", 2, "met"),
    ]


def test_a_name_without_a_fault_resolves(tmp_path):
    found, context = asyncio.run(looked_up(tmp_path, "db.services.internal"))
    assert found == ["127.0.1.2"] * 3
    assert context.ledger == []


@pytest.mark.parametrize(("name", "address"), [("cache", "127.0.1.3"), ("example.com", "")])
def test_other_names_are_not_ours(tmp_path, name, address):
    found, context = asyncio.run(looked_up(tmp_path, name, place("db", "dns_failure")))
    assert found == [address] * 3
    assert context.ledger == []
