"""A client that drops its request meets nothing; one that waits, or only ends its own direction, does."""

from __future__ import annotations

import socket
import struct
import time

import pytest

from holdfast.model.scenario import Injection
from http_proxy_kit import ROWS, wait_for

REPLIES = [
    ("error", {}),
    ("rate_limit", {}),
    ("phantom_success", {}),
    ("lost_reply", {}),
    ("malformed", {}),
    ("timeout", {"delay_ms": 0}),
]
WAITS = [("timeout", {"delay_ms": 2000}), ("slow", {"delay_ms": 2000})]


def tool(mode, url, **settings):
    return Injection("tool", "shop", mode, settings, match_url=f"{url}/*")


def network(mode, url, **settings):
    return Injection("http", f"{url}/*", mode, settings)


def request(url, *more):
    host = url.partition("//")[2]
    return "\r\n".join((f"GET {url}/rows HTTP/1.1", f"host: {host}", *more, "", "")).encode()


def connect_to(url):
    place = url.partition("//")[2]
    return f"CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n\r\n".encode()


UPGRADE = ("connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-key: AAAA")


def dropped(trial, data, *, reset=False):
    """Sends a request and closes, in one step of the proxy's loop: both are there before either is read."""

    async def drop():
        client = socket.create_connection(("127.0.0.1", trial.port))
        client.sendall(data)
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()

    trial.run(drop())


def all_of(client):
    """Whatever comes, until it ends."""
    data = b""
    try:
        while more := client.recv(65_536):
            data += more
    except ConnectionResetError:
        pass
    return data


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize(("mode", "settings"), REPLIES + WAITS)
def test_a_client_that_drops_its_request_meets_nothing(bench, plain, mode, settings, reset):
    with bench.trial([tool(mode, plain.url, **settings)]) as trial:
        dropped(trial, request(plain.url), reset=reset)
        (event,) = trial.events()
    assert [met for _, _, met in trial.met] == ["no_effect"]
    assert trial.context.ledger[0].note
    assert (event.error_type, event.fault) == ("client_gone", "")
    assert trial.context.troubles == []


@pytest.mark.parametrize(("mode", "settings"), [("error", {}), ("slow", {"delay_ms": 2000})])
def test_a_request_for_a_websocket_that_is_dropped_meets_nothing(bench, plain, mode, settings):
    with bench.trial([tool(mode, plain.url, **settings)]) as trial:
        dropped(trial, request(plain.url, *UPGRADE))
        (event,) = trial.events()
    assert [met for _, _, met in trial.met] == ["no_effect"]
    assert event.duration_ms < 1500  # though nothing is read from such a client


@pytest.mark.parametrize("mode", ["dns_failure", "tls_error"])
def test_a_connection_that_is_dropped_while_it_is_made_meets_nothing(bench, secure, mode):
    with bench.trial([network(mode, secure.url)]) as trial:
        dropped(trial, connect_to(secure.url))
        trial.events()
    assert [met for _, _, met in trial.met] == ["no_effect"]


def test_a_connection_that_never_begins_tls_does_not_meet_an_error_of_it(bench, secure):
    with bench.trial([network("tls_error", secure.url)]) as trial:
        with socket.create_connection(("127.0.0.1", trial.port)) as client:
            client.sendall(connect_to(secure.url))
            assert client.recv(100).startswith(b"HTTP/1.1 200")
            wait_for(lambda: bool(trial.met))
        trial.events()
    assert [met for _, _, met in trial.met] == ["no_effect"]


def test_a_request_inside_tls_that_is_dropped_meets_nothing(bench, secure):
    import ssl

    with bench.trial([tool("error", secure.url)]) as trial:
        trust = ssl.create_default_context(cafile=trial.ca_file)
        client = socket.create_connection(("127.0.0.1", trial.port))
        client.sendall(connect_to(secure.url))
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        inside = trust.wrap_socket(client, server_hostname="localhost")

        async def drop():
            inside.sendall(request(secure.url).replace(f"GET {secure.url}".encode(), b"GET "))
            inside.close()

        trial.run(drop())
        trial.events()
    assert [met for _, _, met in trial.met] == ["no_effect"]


def test_a_hang_is_met_by_a_client_that_waited_and_not_by_one_that_left(bench, plain):
    with bench.trial([network("timeout", plain.url)]) as trial:
        dropped(trial, request(plain.url))
        trial.events()
        with socket.create_connection(("127.0.0.1", trial.port)) as client:
            client.sendall(request(plain.url))
            wait_for(lambda: len(trial.met) == 2)
            time.sleep(0.2)
        trial.events(2)
    assert [met for _, _, met in trial.met] == ["no_effect", "met"]


@pytest.mark.parametrize(("mode", "settings"), WAITS)
def test_a_client_that_gives_up_after_a_while_has_met_the_wait(bench, plain, mode, settings):
    with bench.trial([tool(mode, plain.url, **settings)]) as trial:
        with socket.create_connection(("127.0.0.1", trial.port)) as client:
            client.sendall(request(plain.url))
            wait_for(lambda: bool(trial.met))
            time.sleep(0.2)
        (event,) = trial.events()
    assert [met for _, _, met in trial.met] == ["met"]
    assert event.fault == mode


def test_a_wait_shorter_than_what_counts_is_met_by_who_stays(bench, plain):
    with bench.trial([tool("slow", plain.url, delay_ms=5)]) as trial:
        assert trial.get(plain.url + "/rows").json() == ROWS
    assert [met for _, _, met in trial.met] == ["met"]


@pytest.mark.parametrize(
    ("mode", "settings", "expected"),
    [
        ("error", {}, b"HTTP/1.1 503"),
        ("phantom_success", {}, b'"ok"'),
        ("slow", {"delay_ms": 100}, b"first one"),
        ("timeout", {"delay_ms": 100}, b""),
        ("lost_reply", {}, b""),
    ],
)
def test_a_client_that_has_ended_its_own_direction_is_there(bench, plain, mode, settings, expected):
    with bench.trial([tool(mode, plain.url, **settings)]) as trial:
        with socket.create_connection(("127.0.0.1", trial.port)) as client:
            client.sendall(request(plain.url))
            client.shutdown(socket.SHUT_WR)
            got = all_of(client)
        trial.events()
    assert expected in got
    assert bool(got) is bool(expected)
    assert [met for _, _, met in trial.met] == ["met"]


def test_a_client_that_ends_its_own_direction_and_then_leaves_is_noticed(bench, plain):
    with bench.trial([tool("timeout", plain.url, delay_ms=5000)]) as trial:
        with socket.create_connection(("127.0.0.1", trial.port)) as client:
            client.sendall(request(plain.url))
            client.shutdown(socket.SHUT_WR)
            wait_for(lambda: bool(trial.met))
            time.sleep(0.2)
        (event,) = trial.events()
    assert event.duration_ms < 4000
    assert [met for _, _, met in trial.met] == ["met"]
