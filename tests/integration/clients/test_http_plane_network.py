"""http_faults through the proxy: Toxiproxy's names, as a client meets them."""

from __future__ import annotations

import socket
import ssl
import time

import pytest
import requests

from holdfast.model.scenario import Injection, Schedule
from http_proxy_kit import ROWS

BOTH = pytest.mark.parametrize("scheme", ["plain", "secure"])


@pytest.fixture
def server(request, scheme):
    return request.getfixturevalue(scheme)


def network(mode, url, schedule=None, **settings):
    return Injection("http", f"{url}/*", mode, settings, schedule or Schedule())


def asking(trial, url):
    client = socket.create_connection(("127.0.0.1", trial.port), timeout=5)
    client.sendall(f"GET {url}/rows HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return client


def timed(trial, url):
    began = time.monotonic()
    reply = trial.get(url)
    return reply, time.monotonic() - began


@BOTH
def test_latency(bench, server, scheme):
    with bench.trial([network("latency", server.url, delay_ms=200)]) as trial:
        reply, took = timed(trial, server.url + "/rows")
    assert reply.json() == ROWS
    assert took >= 0.2
    assert trial.met == [("http", "latency", "met")]


@BOTH
def test_bandwidth(bench, server, scheme):
    with bench.trial([network("bandwidth", server.url, rate=10)]) as trial:
        reply, took = timed(trial, server.url + "/text")
    assert len(reply.content) == 2_700
    assert 0.2 <= took < 2
    assert "10 kB" in trial.context.ledger[0].got


@BOTH
def test_down_is_a_connection_closed_at_once(bench, server, scheme):
    with bench.trial([network("down", server.url)]) as trial, pytest.raises(requests.ConnectionError, match="closed"):
        trial.get(server.url + "/rows")
    assert server.seen == []
    assert trial.met == [("http", "down", "met")]


def test_reset_peer_sends_rst(bench, plain):
    with bench.trial([network("reset_peer", plain.url)]) as trial:
        client = asking(trial, plain.url)
        with pytest.raises(ConnectionResetError):
            client.recv(100)
        client.close()
    assert plain.seen == []


def test_down_sends_no_rst(bench, plain):
    with bench.trial([network("down", plain.url)]) as trial, asking(trial, plain.url) as client:
        assert client.recv(100) == b""


@BOTH
@pytest.mark.parametrize("mode", ["timeout", "partition"])
def test_nothing_comes_and_nothing_is_closed(bench, server, scheme, mode):
    with bench.trial([network(mode, server.url)]) as trial:
        with pytest.raises(requests.Timeout):
            trial.get(server.url + "/rows", timeout=0.3)
        (event,) = trial.events()
    assert (event.error_type, event.fault) == ("timeout", mode)
    assert server.seen == []


def test_timeout_closes_after_its_delay(bench, plain):
    with bench.trial([network("timeout", plain.url, delay_ms=100)]) as trial, pytest.raises(requests.ConnectionError):
        trial.get(plain.url + "/rows")


@BOTH
def test_slicer_gives_the_same_bytes_in_pieces(bench, server, scheme):
    with bench.trial([network("slicer", server.url, average_size=100, size_variation=50, delay_ms=2)]) as trial:
        reply, took = timed(trial, server.url + "/text")
    assert reply.content == b"plain words of some length\n" * 100
    assert took >= 0.03


@BOTH
def test_limit_data_cuts_the_body_off(bench, server, scheme):
    with bench.trial([network("limit_data", server.url, bytes=1_000)]) as trial:
        with pytest.raises(requests.RequestException) as raised:
            trial.get(server.url + "/text")
        (event,) = trial.events()
    assert "1000 bytes read, 1700 more" in str(raised.value)
    assert event.error_type == "connection_lost"


def test_limit_data_over_the_length_is_no_effect(bench, plain):
    with bench.trial([network("limit_data", plain.url, bytes=100_000)]) as trial:
        assert trial.get(plain.url + "/text").ok
    assert trial.met == [("http", "limit_data", "no_effect")]


@BOTH
def test_slow_close_holds_the_end_back(bench, server, scheme):
    with bench.trial([network("slow_close", server.url, delay_ms=200)]) as trial:
        reply, took = timed(trial, server.url + "/rows")
    assert reply.json() == ROWS
    assert took >= 0.2
    assert reply.headers["connection"] == "close"


@BOTH
def test_dns_failure_is_what_a_proxy_says(bench, server, scheme):
    with bench.trial([network("dns_failure", server.url)]) as trial:
        if scheme == "plain":
            assert trial.get(server.url + "/rows").status_code == 502
        else:
            with pytest.raises(requests.exceptions.ProxyError, match="502"):
                trial.get(server.url + "/rows")
        (event,) = trial.events()
    assert (event.status, event.fault) == (502, "dns_failure")
    assert trial.met == [("http", "dns_failure", "met")]
    assert server.seen == []


def test_dns_failure_heals_with_the_next_connection(bench, secure):
    with bench.trial([network("dns_failure", secure.url, Schedule(times=1))]) as trial:
        with pytest.raises(requests.exceptions.ProxyError):
            trial.get(secure.url + "/rows")
        assert trial.get(secure.url + "/rows").json() == ROWS


def test_tls_error_fails_the_handshake(bench, secure):
    with bench.trial([network("tls_error", secure.url)]) as trial:
        with pytest.raises(requests.exceptions.SSLError, match=r"(?i)handshake.failure"):
            trial.get(secure.url + "/rows")
        (event,) = trial.events()
    assert (event.error_type, event.fault) == ("tls_error", "tls_error")
    assert trial.met == [("http", "tls_error", "met")]


def test_tls_error_is_not_met_where_there_is_no_tls(bench, plain):
    with bench.trial([network("tls_error", plain.url)]) as trial:
        assert trial.get(plain.url + "/rows").ok
    assert trial.met == []


def test_the_ledger_has_the_fault_before_the_client_feels_it(bench, plain):
    with bench.trial([network("latency", plain.url, delay_ms=60_000)]) as trial:
        with pytest.raises(requests.Timeout):
            trial.get(plain.url + "/rows", timeout=0.2)
        assert trial.met == [("http", "latency", "met")]


def test_a_tunnel_that_is_cut_ends_inside_tls(bench, secure):
    """Nothing of ours speaks in the clear inside of a connection that the client holds to be TLS."""
    with bench.trial([network("down", secure.url)]) as trial:
        raw = socket.create_connection(("127.0.0.1", trial.port), timeout=5)
        raw.sendall(f"CONNECT localhost:{secure.server_port} HTTP/1.1\r\n\r\n".encode())
        assert raw.recv(1_000).startswith(b"HTTP/1.1 200")
        with ssl.create_default_context(cafile=trial.ca_file).wrap_socket(raw, server_hostname="localhost") as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(100) == b""
