import asyncio
import socket

import pytest

from holdfast.planes.egress_policy import NotPermitted, Policy


def where(policy, host, port=80):
    return asyncio.run(policy.resolve_addresses(host, port))


def names(**table):
    async def resolve(host, port):
        return table[host.replace(".", "_")]

    return resolve


def test_the_proxy_refuses_addresses_of_the_host_and_its_surroundings():
    for address, why in [
        ("127.0.0.1", "loopback"),
        ("127.8.9.10", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("2002:7f00:0001::", "loopback"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("169.254.169.254", "metadata"),
        ("::ffff:169.254.169.254", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("fd00:ec2::23", "metadata"),
        ("fd20:ce::254", "metadata"),
        ("fd00:42::42", "metadata"),
        ("fe80::a9fe:a9fe", "metadata"),
        ("169.254.170.2", "metadata"),
        ("192.0.0.192", "metadata"),
        ("::ffff:192.0.0.192", "metadata"),
        ("64:ff9b::c000:c0", "metadata"),
        ("2002:c000:00c0::", "metadata"),
        ("100.100.100.200", "metadata"),
        ("168.63.129.16", "metadata"),
        ("0.0.0.0", "single host"),
        ("::", "single host"),
        ("224.0.0.1", "single host"),
        ("ff02::1", "single host"),
        ("255.255.255.255", "single host"),
    ]:
        with pytest.raises(NotPermitted, match=why):
            where(Policy(), address)
        with pytest.raises(NotPermitted, match=why):  # the same behind a name
            where(Policy(resolve=names(innocent_example=[address])), "innocent.example")


@pytest.mark.parametrize("spelling", ["localhost", "2130706433", "0x7f.1", "127.1"])
def test_other_spellings_of_loopback_are_refused_after_they_are_resolved(spelling):
    with pytest.raises(NotPermitted, match="loopback"):
        where(Policy(), spelling)


def test_this_machines_own_addresses_are_refused():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; the kernel picks the address we would use
        except OSError:
            pytest.skip("no network but loopback")
        own = probe.getsockname()[0]
    with pytest.raises(NotPermitted, match="this machine"):
        where(Policy(), own)


def test_public_and_private_addresses_pass():
    assert where(Policy(), "93.184.216.34") == ["93.184.216.34"]
    assert where(Policy(), "10.123.45.67") == ["10.123.45.67"]
    assert where(Policy(), "2606:2800:220:1::1") == ["2606:2800:220:1::1"]


def test_only_the_good_addresses_of_a_name_are_used():
    policy = Policy(resolve=names(both_example=["127.0.0.1", "93.184.216.34"]))
    assert where(policy, "both.example") == ["93.184.216.34"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/*", "127.0.0.1:8080", "http://localhost:8080/v1/*"])
def test_a_declared_loopback_service_is_allowed_only_on_its_port(url):
    policy = Policy([url])
    assert where(policy, "127.0.0.1", 8080) == ["127.0.0.1"]
    assert "127.0.0.1" in where(policy, "localhost", 8080)
    with pytest.raises(NotPermitted):
        where(policy, "127.0.0.1", 8081)


def test_a_glob_declares_nothing():
    for glob in ("*", "http://*:8080/*", "http://127.*:8080/*", "https://*.example.com/*", "http://127.0.0.1:*/x"):
        with pytest.raises(NotPermitted):
            where(Policy([glob]), "127.0.0.1", 8080)


def test_egress_rules():
    policy = Policy(default="deny", allow=["*.example.com", "api.x.com:443"], resolve=names())
    policy.ensure_permitted("a.example.com", 80)
    policy.ensure_permitted("API.x.com", 443)
    for host, port in (("api.x.com", 80), ("example.com", 80), ("other.org", 443)):
        with pytest.raises(NotPermitted, match="egress"):
            policy.ensure_permitted(host, port)


def test_a_denied_name_is_not_even_resolved():
    with pytest.raises(NotPermitted):
        where(Policy(default="deny", resolve=names()), "secret-in-a-name.example")


def test_declared_targets_on_loopback_are_known():
    assert Policy(["http://localhost:1/*"]).has_loopback_target
    assert Policy(["http://127.0.0.1:1/*"]).has_loopback_target
    assert not Policy(["https://api.example.com/*", "*"]).has_loopback_target


@pytest.mark.parametrize(("host", "loopback"), [("127.0.0.1", True), ("::ffff:127.0.0.1", True), ("10.0.0.1", False)])
def test_a_denial_has_a_field_for_loopback(host: str, loopback: bool) -> None:
    """Not by its words: `loopback.example` at a link-local address is refused for another reason."""

    async def resolve(name: str, port: int) -> list[str]:
        return ["169.254.1.1"]

    policy = Policy(["http://localhost:1/"], default="deny", allow=["*127.0.0.1", "*.example"], resolve=resolve)
    with pytest.raises(NotPermitted) as refused:
        asyncio.run(policy.resolve_addresses(host, 80))
    assert refused.value.loopback is loopback
    with pytest.raises(NotPermitted) as refused:
        asyncio.run(policy.resolve_addresses("loopback.example", 80))
    assert refused.value.loopback is False
