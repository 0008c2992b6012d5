"""Ways in: which ports of this machine they begin at, and what is told of them."""

import asyncio
import contextlib
import errno
import socket
from types import SimpleNamespace

from free_port import free_port
from holdfast.model.world import Ingress, IngressPort, Network
from holdfast.world import ingress
from holdfast.world.ingress import IngressPorts, list_unsupported_ingress

NOBODY = SimpleNamespace(connect=None)


def ways(*ports, default="deny"):
    return Network(ingress=Ingress(default, tuple(IngressPort(from_="host", to_port=port) for port in ports)))


def told(network, *, shared=False, ours=()):
    async def run():
        opened = IngressPorts(network, shared=shared)
        await opened.open(NOBODY, ours)
        found = opened.isolation
        await opened.close()
        assert opened.isolation == found, "it is still told when the ways are closed"
        return found

    return asyncio.run(run())


def test_nothing_is_told_where_nothing_is_asked():
    assert told(Network()) == told(Network(), shared=True) == ()


def test_a_way_begins_at_the_port_that_it_leads_to():
    port = free_port()
    (one,) = told(ways(port, port))
    assert (one.feature, one.enforced) == ("network.ingress", True)
    assert one.why == f"127.0.0.1:{port} reaches port {port} of the agent"
    with contextlib.closing(ingress.open_listener(port)) as again:
        assert again.getsockname()[1] == port, "it was closed"


def test_a_port_that_is_taken_is_another():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (one,) = told(ways(port))
    assert one.enforced
    assert one.why.endswith(f"reaches port {port} of the agent")
    assert not one.why.startswith(f"127.0.0.1:{port} ")


def test_a_port_that_cannot_be_had_is_reported(monkeypatch):
    def refused(port):
        raise PermissionError(errno.EACCES, "Permission denied")

    port = free_port()
    monkeypatch.setattr(ingress, "open_listener", refused)
    (one,) = told(ways(port))
    assert (one.enforced, one.code) == (False, "ingress-refused")
    assert [*list_unsupported_ingress(ways(port), shared=False)] == [one]


def test_holdfast_itself_is_not_reached():
    port = free_port()
    (one,) = told(ways(port), ours={port})
    assert (one.enforced, one.code) == (False, "ingress-own-port")


def test_any_port_cannot_be_led_in_but_those_that_are_named_are():
    port = free_port()
    (one,) = told(ways(port, default="allow"))
    assert (one.enforced, one.code) == (False, "ingress-unnamed")
    assert one.why.startswith(f"127.0.0.1:{port} reaches port {port} of the agent; ")
    assert [found.enforced for found in list_unsupported_ingress(ways(default="allow"), shared=False)] == [False]


def test_without_a_network_of_its_own_every_port_can_be_reached():
    (any_port,) = told(ways(default="allow"), shared=True)
    assert any_port.enforced
    (named,) = told(ways(3000), shared=True)
    assert (named.enforced, named.code) == (False, "ingress-shared")
    assert [*list_unsupported_ingress(ways(default="allow"), shared=True)] == []
    assert [*list_unsupported_ingress(ways(3000), shared=True)] == [named]


def test_a_way_that_can_be_opened_is_not_an_unsupported_ingress():
    assert [*list_unsupported_ingress(ways(free_port()), shared=False)] == []
