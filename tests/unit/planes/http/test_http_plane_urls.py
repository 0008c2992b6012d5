import pytest

from holdfast.model.scenario import Injection
from holdfast.planes.injection.active_injection import can_face
from holdfast.planes.urls import is_origin, matches_origin, matches_url


@pytest.mark.parametrize(
    ("glob", "origin", "meant"),
    [
        ("https://api.example.com/v1/*", "https://api.example.com", True),
        ("*.example.com", "https://api.example.com:8443", True),
        ("*", "https://any.example", True),
        ("http://api.example.com/*", "https://api.example.com", False),
        ("https://other.example/*", "https://api.example.com", False),
        ("https://[::1]:8443/*", "https://[::1]:8443", True),
    ],
)
def test_a_connection_is_meant_by_the_host_of_a_glob(glob, origin, meant):
    assert is_origin(origin)
    assert matches_origin(glob, origin) is meant


def test_an_ipv6_address_is_not_a_class_of_characters():
    assert matches_url("http://[::1]:80/*", "http://[::1]/x")
    assert not matches_url("http://[::1]:80/*", "http://[::2]/x")


@pytest.mark.parametrize(
    ("mode", "target", "faced"),
    [
        ("dns_failure", "https://a.example", True),
        ("dns_failure", "https://a.example/path", False),
        ("dns_failure", "http://a.example/path", True),
        ("tls_error", "https://a.example", True),
        ("tls_error", "http://a.example/path", False),
        ("latency", "https://a.example", False),
        ("latency", "https://a.example/path", True),
    ],
)
def test_what_fails_while_connecting_is_met_there_and_nowhere_else(mode, target, faced):
    assert can_face(Injection("http", "*", mode), "http", target) is faced
