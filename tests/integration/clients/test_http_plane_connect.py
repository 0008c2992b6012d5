"""CONNECT, and where the proxy goes: blind tunnels, TLS that is opened, places that are refused."""

from __future__ import annotations

import base64
import hashlib
import socket
import ssl
import threading

import pytest
import requests

from golden_words import Golden
from holdfast.model.scenario import Injection
from holdfast.planes.egress_policy import Policy
from holdfast.planes.http.trust import TRUST_VARIABLES
from http_proxy_kit import ROWS


def connected(trial, place, more=b""):
    client = socket.create_connection(("127.0.0.1", trial.port), timeout=5)
    client.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode() + more)
    head = b""
    while b"\r\n\r\n" not in head:
        more = client.recv(1)
        if not more:
            break
        head += more
    return client, head


# -- what is looked into ------------------------------------------------------------------------------
def test_a_host_that_nothing_asks_about_passes_unread(bench, secure, elsewhere):
    with bench.trial(declared=[secure.url], intercepted=[]) as trial, trial.session() as session:
        session.verify = elsewhere.own_file  # the server's own certificate comes through
        assert session.get(secure.url + "/rows?secret=1").json() == ROWS
        session.close()
        (event,) = trial.events()
    assert event.tool == f"CONNECT {secure.url}"
    assert (event.event_type, event.status, event.write, event.error_type) == ("http_call", 200, False, "")
    assert "secret" not in repr(event)


def test_a_client_that_refuses_our_certificate_is_shown_as_such(bench, secure, elsewhere, golden: Golden):
    fault = Injection("tool", "*", "error", match_url=f"{secure.url}/*")
    with bench.trial([fault]) as trial, trial.session() as session:
        session.verify = elsewhere.own_file
        with pytest.raises(requests.exceptions.SSLError):
            session.get(secure.url + "/rows")
        (event,) = trial.events()
    assert event.error_type == "certificate_refused"
    (note,) = trial.context.notes
    golden(note)
    assert all(name in note for name in TRUST_VARIABLES)
    assert trial.met == []


def test_a_client_that_shakes_hands_and_leaves_has_refused_too(bench, secure):
    """Node checks the certificate after the handshake, and then just goes."""
    with bench.trial(intercepted=[f"{secure.url}/*"]) as trial:
        raw, _ = connected(trial, f"localhost:{secure.server_port}")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.wrap_socket(raw, server_hostname="localhost").close()
        (event,) = trial.events()
    assert event.error_type == "certificate_refused"


def test_a_trial_that_ends_while_the_certificate_is_looked_at_still_tells_of_it(bench, secure, golden: Golden):
    """An agent that refuses it and exits at once may be gone before its alert is read."""
    with bench.trial(intercepted=[f"{secure.url}/*"]) as trial:
        raw, _ = connected(trial, f"localhost:{secure.server_port}")
        with raw:
            received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = ssl.create_default_context().wrap_bio(received, sent, server_hostname="localhost")
            with pytest.raises(ssl.SSLWantReadError):
                client.do_handshake()
            raw.sendall(sent.read())
            assert raw.recv(5)  # the certificate is on its way
            trial.run(left(trial))
            (event,) = trial.context.trace
    assert event.error_type == "certificate_refused"
    golden(trial.context.notes[0])


async def left(trial):
    trial.plane.end_trial(trial.context)


def test_several_requests_on_one_opened_connection(bench, secure):
    with bench.trial(intercepted=[f"{secure.url}/*"]) as trial, trial.session() as session:
        for _ in range(3):
            assert session.get(secure.url + "/rows").json() == ROWS
        assert len(trial.listener.connections) == 1
    assert [event.n for event in trial.context.trace] == [1, 2, 3]


def test_plain_http_inside_of_a_tunnel(bench, plain):
    fault = Injection("tool", "*", "error", {"error_code": 418}, match_url=f"{plain.url}/rows")
    with bench.trial([fault]) as trial:
        client, head = connected(trial, f"localhost:{plain.server_port}")
        assert head.startswith(b"HTTP/1.1 200")
        client.sendall(b"GET /rows HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert client.recv(1_000).startswith(b"HTTP/1.1 418")
        client.close()
    assert trial.context.ledger[0].target == f"{plain.url}/rows"


def test_the_connection_decides_where_a_request_goes_not_its_host_header(bench, plain):
    with bench.trial(intercepted=[f"{plain.url}/*"]) as trial:
        client, _ = connected(trial, f"localhost:{plain.server_port}")
        client.sendall(b"GET /rows HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        client.close()
        (event,) = trial.events()
    assert event.tool == f"GET {plain.url}/rows"


# -- what is refused ----------------------------------------------------------------------------------
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "2130706433", "0.0.0.0"])
def test_the_hosts_loopback_is_not_reached(bench, plain, host, golden: Golden):
    with bench.trial(intercepted=["*"]) as trial:
        url = f"http://{host}:{plain.server_port}/rows"
        reply = trial.get(url)
        client, head = connected(trial, f"{host}:{plain.server_port}")
        client.close()
        assert len(trial.events(2)) == 2
    assert reply.status_code == 403
    golden(reply.text)
    assert head.startswith(b"HTTP/1.1 403")
    assert plain.seen == []
    assert any("refused" in note for note in trial.context.notes)
    assert {event.error_type for event in trial.context.trace} == {"refused"}


def test_the_proxys_own_listener_is_not_a_way_in(bench):
    with bench.trial(intercepted=["*"]) as trial:
        assert trial.get(f"http://127.0.0.1:{trial.port}/x").status_code == 403


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_address_that_was_checked_is_the_one_that_is_connected_to(bench, plain, secure, scheme):
    """No second resolution: the system does not even know this name."""
    server = plain if scheme == "http" else secure
    asked = []

    async def resolve(host, port):
        asked.append(host)
        return ["127.0.0.1"]

    policy = Policy([f"127.0.0.1:{server.server_port}"], resolve=resolve)
    with bench.trial(policy=policy, intercepted=["*"]) as trial:
        reply = trial.get(f"{scheme}://shop.invalid:{server.server_port}/rows")
    assert reply.json() == ROWS
    assert asked == ["shop.invalid"]


def test_egress_rules_hold(bench, plain):
    policy = Policy(default="deny", allow=["*.example.com"])
    with bench.trial(policy=policy) as trial:
        assert trial.get(plain.url + "/rows").status_code == 403


@pytest.mark.parametrize("named", [True, False])
def test_an_upstream_that_is_down_is_no_doing_of_a_fault(bench, named):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    url = f"http://localhost:{port}"
    policy = Policy([url] if named else [f"http://127.0.0.1:{port}", f"http://[::1]:{port}"])
    with bench.trial(policy=policy, intercepted=[url] if named else []) as trial:
        reply = trial.get(url + "/rows")
        (event,) = trial.events()
    assert reply.status_code == 502
    assert event.error_type == "upstream"
    told = trial.context.troubles if named else trial.context.notes
    assert any("no fault" in text for text in told)
    assert bool(trial.context.troubles) is named  # what the agent made up is its own choice


def test_an_upstream_whose_certificate_is_bad_is_reported(bench, secure):
    with bench.trial(intercepted=[f"https://127.0.0.1:{secure.server_port}/*"]) as trial:
        reply = trial.get(f"https://127.0.0.1:{secure.server_port}/rows")
    assert reply.status_code == 502
    assert "TLS" in trial.context.troubles[0]


@pytest.mark.parametrize("target", ["nonsense", "host:", ":80", "a b:80", "host:99999", "u@h:80"])
def test_a_connect_to_nowhere_is_a_bad_request(bench, target):
    with bench.trial() as trial:
        client, head = connected(trial, target)
        client.close()
    assert head.startswith(b"HTTP/1.1 400")


# -- who else is behind the proxy ---------------------------------------------------------------------
async def said(exchange, context, what):
    body = await exchange.read_body()
    await exchange.respond(200, (), f"{what} {exchange.head.target} {len(body)}".encode())


MODEL = {"model": said, "is_model": lambda host: host == "api.openai.com"}


def test_hosts_of_models_go_to_the_gateway(bench):
    with bench.trial(**MODEL) as trial:
        assert (
            trial.ask("POST", "https://api.openai.com/v1/chat", data="12345").text
            == "https://api.openai.com /v1/chat 5"
        )
    assert trial.context.trace == []


def test_a_models_host_at_another_port_is_a_place_like_any_other(bench, plain, secure):
    async def resolve(host, port):
        return ["127.0.0.1"]

    with bench.trial(**MODEL, policy=Policy(resolve=resolve), intercepted=["*"]) as trial:
        assert trial.get(f"http://api.openai.com:{plain.server_port}/rows").status_code == 403
        assert trial.get("http://api.openai.com/v1/models").status_code == 403
        client, head = connected(trial, f"api.openai.com:{secure.server_port}")
        client.close()
        assert head.startswith(b"HTTP/1.1 403")
        assert {event.error_type for event in trial.events(3)} == {"refused"}
    assert plain.seen == []


def test_the_gateway_is_reached_whatever_egress_says(bench):
    with bench.trial(**MODEL, policy=Policy(default="deny")) as trial:
        assert trial.get("https://api.openai.com/v1/models").text == "https://api.openai.com /v1/models 0"
        client = socket.create_connection(("127.0.0.1", trial.port), timeout=5)
        client.sendall(b"GET https://api.openai.com/v1/models HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert client.recv(1_000).startswith(b"HTTP/1.1 200")
        client.close()
    assert (trial.context.notes, trial.context.trace) == ([], [])


def test_a_service_that_represents_a_models_host_is_not_a_model(bench, plain):
    services = {("api.openai.com", 443): ("127.0.0.1", plain.server_port)}
    with bench.trial(**MODEL, intercepted=["api.openai.com"], services=services) as trial:
        client = socket.create_connection(("127.0.0.1", trial.port), timeout=5)
        client.sendall(b"GET https://api.openai.com/rows HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert client.recv(1_000).startswith(b"HTTP/1.1 200")
        client.close()
    assert [path for _, path, _, _ in plain.seen] == ["/rows"]


def test_requests_to_our_own_listener_work_through_the_proxy(bench):
    own = {"own": ("127.0.0.1", 65_000), "own_handler": said}
    with bench.trial(**own) as trial:
        assert trial.get("http://127.0.0.1:65000/token/openai/v1/models?x=1").text.startswith(
            "/token/openai/v1/models?x=1 "
        )
        client, _head = connected(trial, "127.0.0.1:65000")
        client.sendall(b"GET /token/x HTTP/1.1\r\nConnection: close\r\n\r\n")
        reply = b""
        while more := client.recv(1_000):
            reply += more
        client.close()
    assert b"/token/x /token/x 0" in reply
    assert trial.context.trace == []


# -- websockets ---------------------------------------------------------------------------------------
@pytest.fixture
def echo():
    """A server that agrees to a websocket and then sends back what it gets; `/no` is refused."""
    listening = socket.create_server(("127.0.0.1", 0))

    def run():
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            with client:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += client.recv(1_000)
                if head.startswith(b"GET /no"):
                    client.sendall(b"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n")
                    continue
                key = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
                digest = hashlib.sha1(key.split(b": ")[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
                client.sendall(
                    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    b"Sec-WebSocket-Accept: " + base64.b64encode(digest) + b"\r\n\r\nfirst"
                )
                while data := client.recv(1_000):
                    client.sendall(data)

    thread = threading.Thread(target=run)
    thread.start()
    yield f"http://localhost:{listening.getsockname()[1]}"
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()


def upgrading(trial, url):
    client = socket.create_connection(("127.0.0.1", trial.port), timeout=5)
    client.sendall(
        f"GET {url} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: abc\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    return client


def test_a_websocket_passes_untouched(bench, echo):
    with bench.trial(declared=[echo]) as trial:
        client = upgrading(trial, f"{echo}/ws")
        data = b""
        while not data.endswith(b"first"):
            data += client.recv(1_000)
        assert data.startswith(b"HTTP/1.1 101")
        assert b"sec-websocket-accept" in data.lower()
        client.sendall(b"\x81\x05hello")
        assert client.recv(100) == b"\x81\x05hello"
        client.close()
        (event,) = trial.events()
    assert (event.status, event.error_type) == (101, "")


def test_a_websocket_that_is_refused_is_an_ordinary_reply(bench, echo):
    with bench.trial(declared=[echo]) as trial:
        client = upgrading(trial, f"{echo}/no")
        data = client.recv(1_000)
        client.close()
        (event,) = trial.events()
    assert data.startswith(b"HTTP/1.1 403")
    assert data.endswith(b"\r\n\r\nno")
    assert event.status == 403


def test_a_fault_that_needs_a_reply_is_not_met_by_a_websocket(bench, echo):
    with bench.trial([Injection("tool", "*", "wrong_value", match_url=f"{echo}/*")]) as trial:
        client = upgrading(trial, f"{echo}/ws")
        assert client.recv(1_000).startswith(b"HTTP/1.1 101")
        client.close()
        trial.events()
    assert trial.met == [("http", "wrong_value", "no_effect")]


def test_a_fault_before_the_reply_is_met_by_a_websocket(bench, echo):
    with bench.trial([Injection("tool", "*", "error", match_url=f"{echo}/*")]) as trial:
        client = upgrading(trial, f"{echo}/ws")
        assert client.recv(1_000).startswith(b"HTTP/1.1 503")
        client.close()
    assert trial.met == [("http", "error", "met")]


def test_a_request_in_the_same_segment_as_the_end_of_the_handshake(bench, secure):
    """As a fast client sends it: nothing that comes before we are ready may be lost."""
    with bench.trial(intercepted=[f"{secure.url}/*"]) as trial:
        raw, _ = connected(trial, f"localhost:{secure.server_port}")
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = ssl.create_default_context(cafile=trial.ca_file).wrap_bio(
            incoming, outgoing, server_hostname="localhost"
        )
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                raw.sendall(outgoing.read())
                incoming.write(raw.recv(65_536))
        client.write(b"GET /rows HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        raw.sendall(outgoing.read())
        incoming.write(raw.recv(65_536))
        raw.close()
        (event,) = trial.events()
    assert event.status == 200


@pytest.mark.parametrize(("past", "said"), [("", 1), ("localhost", 0)])
def test_a_proxy_of_the_users_own_is_not_used_and_that_is_said_once(bench, plain, past, said):
    around = {"HTTP_PROXY": "http://proxy.corp:3128", "no_proxy": past}
    with bench.trial(declared=[plain.url], environ=around) as trial:
        trial.get(plain.url + "/rows")
        trial.get(plain.url + "/rows")
    assert sum("HTTP_PROXY" in note for note in trial.context.notes) == said


def test_a_fault_that_breaks_is_ours_not_the_agents(bench, plain, golden: Golden):
    fault = Injection("tool", "*", "error", {"error_code": "no number"}, match_url=f"{plain.url}/*")
    with bench.trial([fault]) as trial:
        assert trial.get(plain.url + "/rows").status_code == 500
        (event,) = trial.events()
    assert event.error_type == "harness"
    golden(trial.context.troubles[0])
