import gzip
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.scenario import Injection
from holdfast.planes.http import request
from holdfast.planes.injection.active_injection import can_act_on
from holdfast.planes.urls import is_origin, matches_origin, matches_url

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), TREES) | st.lists(TREES))
def test_json_is_read_and_written_without_loss(data):
    body = request.encode_body(data, "application/json; charset=utf-8")
    assert request.decode_body("application/json", body) == data


@given(st.binary())
def test_any_body_can_be_read_and_written(body):
    for kind in ("application/json", "text/plain", "image/png", None, "text/html; charset=utf-16", "x;charset=\0"):
        assert isinstance(request.encode_body(request.decode_body(kind, body), kind), bytes)


def test_json_by_its_type_only():
    assert request.decode_body("application/json", b'{"a": 1}') == {"a": 1}
    assert request.decode_body("application/problem+json; charset=utf-8", b"[1]") == [1]
    assert request.decode_body("text/html", b'{"a": 1}') == '{"a": 1}'


def test_a_json_scalar_stays_text_so_that_it_can_be_broken():
    assert request.decode_body("application/json", b'"word"') == '"word"'
    assert request.decode_body("application/json", b"not json") == "not json"


def test_binary_stays_bytes():
    assert request.decode_body("image/png", b"\x89PNG\xff") == b"\x89PNG\xff"
    assert request.encode_body(b"\x89PNG\xff", "image/png") == b"\x89PNG\xff"


def test_broken_json_text_goes_out_broken():
    assert request.encode_body('{"a": ', "application/json") == b'{"a": '


def test_text_keeps_its_charset():
    body = "café".encode("latin-1")
    text = request.decode_body("text/plain; charset=latin-1", body)
    assert text == "café"
    assert request.encode_body(text + "!", "text/plain; charset=latin-1") == body + b"!"


def test_lone_surrogates_can_be_written():
    assert json.loads(request.encode_body({"a": "\ud800"}, "application/json")) == {"a": "\ud800"}


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")[2:-4]),
        (None, b"hello"),
        ("identity", b"hello"),
    ],
    ids=["gzip", "deflate", "deflate-raw", "none", "identity"],
)
def test_content_encodings_are_undone(encoding, packed):
    assert request.decompress(encoding, packed, 100) == b"hello"


def test_a_bomb_is_cut_off():
    assert request.decompress("gzip", gzip.compress(bytes(10_000_000)), 1_000) == bytes(1_000)


def test_an_unknown_encoding_is_not_decoded():
    assert request.decompress("br", b"\x0b\x02\x80hello\x03", 100) is None
    assert request.decompress("gzip", b"no gzip at all", 100) is None


def test_only_readable_encodings_are_requested():
    assert request.limit_encodings(b"gzip, deflate, br, zstd") == b"gzip, deflate"
    assert request.limit_encodings(b"br;q=1.0, gzip;q=0.8") == b"gzip;q=0.8"
    assert request.limit_encodings(b"br") == b"identity"


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
def test_connection_faults_act_only_on_connecting(mode, target, faced):
    assert can_act_on(Injection("http", "*", mode), "http", target) is faced
