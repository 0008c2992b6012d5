"""The HTTP plane: faults on any URL that a launched agent calls, TLS included, and what was not seen."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cli import CALM, Asked, MakeProject, Project, Reply, Serve, Server, contract, rule
from plane_agents import ECHO, command, equip, ledger, quick, trace

FETCHES = """
import json, os, sys, talk
try:
    status, text = talk.request("POST", os.environ["URL"], json.dumps({"q": sys.stdin.read()}),
                                {"content-type": "application/json"}, proxy=True)
    print(status, text)
except Exception as broken:
    print("no reply:", type(broken).__name__)
"""
ANSWERS = [rule("answers", "completes")]
BODY = '{"rows": [1, 2, 3, 4], "ok": true}'


def rows(asked: Asked) -> Reply:
    return 200, BODY


def api(project: MakeProject, server: Server, *matrix: dict[str, Any], **more: Any) -> Project:
    agent = command(env={"URL": f"{server.url}/v1/rows?page=1"})
    spec = contract(more.pop("rules", ANSWERS), list(matrix), agent=agent, **more)
    return equip(project(spec, more.get("source", FETCHES)))


def tool(server: Server, mode: str, **more: Any) -> dict[str, Any]:
    return {"name": mode, "tool_faults": [{"tool": "rows", "match_url": f"{server.url}/v1/*", "mode": mode, **more}]}


def http(server: Server, mode: str, **more: Any) -> dict[str, Any]:
    return {"name": mode, "http_faults": [{"match_url": f"{server.url}/*", "mode": mode, **more}]}


def met(trial: Any) -> list[tuple[str, str, str]]:
    return [(f["plane"], f["mode"], f["effect"]) for f in trial["faults"]]


TOOL = {
    "error": ("503 ", {}),
    "timeout": ("no reply", {"delay_ms": 50}),
    "slow": (f"200 {BODY}", {"delay_ms": 50}),
    "malformed": ("200 ", {}),
    "malicious_response": ("200 ", {}),
    "empty": ("200 ", {}),
    "rate_limit": ("429 ", {"retry_after_s": 2}),
    "auth_expired": ("401 ", {}),
    "error_in_body": ("200 ", {}),
    "schema_drift": ("200 ", {}),
    "partial": ('200 {"rows": [', {}),
    "wrong_value": ("200 ", {}),
    "lost_reply": ("no reply", {}),
    "phantom_success": ("200 ", {}),
    "flapping": ("503 ", {}),
    "oversized": ("200 ", {"bytes": 5000}),
}


def test_every_tool_mode_acts_on_a_url(project: MakeProject, serve: Serve) -> None:
    server = serve(rows)
    found = api(project, server, *[tool(server, mode, **more) for mode, (_, more) in TOOL.items()])
    result = quick(found, "--no-preflight")
    for mode, (begins, _) in TOOL.items():
        trial = result.cells[("answers", mode)]["trials"][0]
        assert met(trial) == [("http", mode, "met")], mode
        assert trial["answer"].startswith(begins), (mode, trial["answer"])
        assert mode == "slow" or trial["answer"].strip() != f"200 {BODY}", mode
    asked = len(server.requests)
    assert asked == len(TOOL) - len({"error", "timeout", "rate_limit", "auth_expired", "phantom_success", "flapping"})


HTTP = {
    "latency": {"delay_ms": 30}, "bandwidth": {"rate": 1}, "down": {}, "timeout": {"delay_ms": 30}, "reset_peer": {},
    "slicer": {"average_size": 5}, "limit_data": {"bytes": 10}, "slow_close": {"delay_ms": 10}, "dns_failure": {},
    "partition": {"times": 1},
}  # fmt: skip


def test_what_no_fault_names_passes_untouched_and_is_in_the_trace(project: MakeProject, serve: Serve) -> None:
    server, other = serve(rows), serve(lambda asked: (201, "other"))
    source = (
        FETCHES + "status, text = talk.request('POST', os.environ['OTHER'], 'x' * 100_000, proxy=True)\nprint(text)\n"
    )
    agent = command(env={"URL": f"{server.url}/v1/rows", "OTHER": f"{other.url}/paid"})
    matrix = [
        tool(server, "error"),
        {"name": "elsewhere", "http_faults": [{"match_url": f"{other.url}/none", "mode": "down"}]},
    ]
    found = equip(project(contract(ANSWERS, matrix, agent=agent), source))
    result = quick(found, "--no-preflight")
    trial = result.cells[("answers", "error")]["trials"][0]
    assert trial["answer"].split() == ["503", *trial["answer"].split()[1:-1], "other"]
    events = trace(found, trial)
    assert [(e["event_type"], e["status"]) for e in events] == [("http_call", 503), ("http_call", 201)]
    assert events[1]["tool"] == f"POST {other.url}/paid"


def test_unmatched_loopback_is_not_sent_through_the_proxy_at_all(project: MakeProject, serve: Serve) -> None:
    source = "import os\nprint(os.environ['NO_PROXY'], os.environ['no_proxy'])\n"
    server = serve(rows)
    free = equip(project(contract(ANSWERS, [CALM], agent=command()), source))
    assert "127.0.0.1" in quick(free, "--no-preflight").trial["answer"]
    named = equip(project(contract(ANSWERS, [tool(server, "error")], agent=command()), source, name="named"))
    assert quick(named, "--no-preflight").trial["answer"].strip() == ""


def test_the_write_that_is_repeated_after_a_lost_reply_is_found(project: MakeProject, serve: Serve) -> None:
    source = """
import json, os, talk
for attempt in range(2):
    try:
        print(talk.request("POST", os.environ["URL"], '{"pay": 5}', {"content-type": "application/json"}, proxy=True))
        break
    except Exception:
        continue
"""
    server = serve(rows)
    rules = [rule("once", "side_effect_once"), rule("recovers", "recovers_within_ms", max_ms=20000)]
    found = api(project, server, CALM, tool(server, "lost_reply", times=1), rules=rules)
    (found.folder / "agent.py").write_text(source)
    result = quick(found)
    assert result.outcomes == {
        ("once", "calm"): "pass", ("once", "lost_reply"): "fail",
        ("recovers", "calm"): "unproven", ("recovers", "lost_reply"): "pass",
    }  # fmt: skip


def test_an_injection_in_a_page_reaches_the_agent_and_its_success_is_seen(project: MakeProject, serve: Serve) -> None:
    server = serve(lambda asked: (200, '{"text": "the weather is fine"}'))
    attack = {"name": "attack", "context_attacks": [{"type": "indirect_injection", "match_url": f"{server.url}/*"}]}
    result = quick(api(project, server, attack), "--no-preflight")
    assert met(result.trial) == [("http", "indirect_injection", "met")]
    assert result.part["attacks"]["succeeded"] == 1  # this agent repeats whatever it reads


# -- TLS ---------------------------------------------------------------------------------------------
CONNECTS = """
import http.client, json, os, ssl, sys, base64
from urllib.parse import urlsplit
url, proxy = urlsplit(os.environ["URL"]), urlsplit(os.environ["HTTPS_PROXY"])
word = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
context = ssl.create_default_context(cafile=os.environ[os.environ["TRUST"]] if os.environ["TRUST"] else None)
if not os.environ["TRUST"]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(os.environ["THEIRS"])
line = http.client.HTTPSConnection(proxy.hostname, proxy.port, context=context, timeout=10)
line.set_tunnel(url.hostname, url.port, {"Proxy-Authorization": "Basic " + word})
try:
    line.request("GET", url.path)
    reply = line.getresponse()
    print(reply.status, reply.read().decode())
except ssl.SSLCertVerificationError:
    print("not trusted")
except OSError as broken:
    print("no reply:", type(broken).__name__)
"""


@contextmanager
def https(folder: Path) -> Iterator[tuple[str, str]]:
    """A server with a certificate for localhost that nobody trusts but who is given it: its URL, and the file."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(1))
        .not_valid_after(now + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    own, both = folder / "theirs.pem", folder / "both.pem"
    own.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    both.write_bytes(own.read_bytes() + key.private_bytes(serialization.Encoding.PEM, *form))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(BODY.encode())

        def log_message(self, *_: object) -> None:
            """A test's output is not the place for it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"https://localhost:{server.server_port}", str(own)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


TRUST = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "AWS_CA_BUNDLE",
         "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "GIT_SSL_CAINFO"]  # fmt: skip


def secured(project: MakeProject, url: str, theirs: str, *matrix: dict[str, Any], trust: str, **more: Any) -> Project:
    agent = command(env={"URL": f"{url}/rows", "TRUST": trust, "THEIRS": theirs})
    rules = more.pop("rules", [rule("polite", "excludes_pattern", patterns=["swine"])])
    return equip(project(contract(rules, list(matrix), agent=agent, **more), CONNECTS, **more))


def test_tls_to_a_place_that_a_fault_names_is_opened_by_a_ca_that_the_agent_trusts(
    project: MakeProject, tmp_path: Path
) -> None:
    with https(tmp_path) as (url, theirs):
        down = {"name": "down", "http_faults": [{"match_url": f"{url}/*", "mode": "down"}]}
        bad = {"name": "bad", "tool_faults": [{"tool": "rows", "match_url": f"{url}/*", "mode": "error"}]}
        tls = {"name": "tls", "http_faults": [{"match_url": f"{url}/*", "mode": "tls_error"}]}
        found = secured(project, url, theirs, down, bad, tls, trust="SSL_CERT_FILE")
        result = quick(found, "--no-preflight", env={"SSL_CERT_FILE": theirs})  # our side trusts the server by this
    answers = {scenario: cell["trials"][0]["answer"] for (_, scenario), cell in result.cells.items()}
    assert answers["bad"].startswith("503 ")
    assert answers["down"].startswith("no reply")
    assert answers["tls"].startswith("no reply")
    assert {entry[1:] for entry in ledger(found)} >= {("http", f"{url}/rows", 1, "error", "met")}


def test_a_client_that_refuses_our_certificate_is_shown_and_its_cell_is_unproven_never_green(
    project: MakeProject, tmp_path: Path
) -> None:
    with https(tmp_path) as (url, theirs):
        bad = {"name": "bad", "tool_faults": [{"tool": "rows", "match_url": f"{url}/*", "mode": "error"}]}
        found = secured(project, url, theirs, bad, trust="")
        result = quick(found, "--no-preflight")
        shown = found.command("contract", "run", "--no-preflight", "-v")
    assert result.trial["answer"].strip() == "not trusted"
    assert (result.code, result.cell["outcome"]) == (5, "unproven")
    (note,) = result.trial["notes"]
    assert " localhost (" in note
    assert "SSL_CERT_FILE" in note
    assert [e["error_type"] for e in trace(found, result.trial)] == ["certificate_refused"]
    assert shown.code == 5


TALKS_TO_OPENAI = CONNECTS.replace(
    'line.request("GET", url.path)',
    'line.request("POST", url.path, os.environ["BODY"], {"content-type": "application/json"})',
)


def test_a_providers_host_through_the_proxy_comes_to_the_gateway(project: MakeProject) -> None:
    """An agent that ignores base URLs, but not the proxy."""
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
    url = "https://api.openai.com:443/v1/chat/completions"
    agent = command(env={"URL": url, "TRUST": "SSL_CERT_FILE", "BODY": json.dumps(body)})
    limit = {"name": "limit", "llm_faults": [{"mode": "rate_limit"}]}
    spec = contract(ANSWERS, [CALM, limit], agent=agent, models={"*": {"script": "model.yaml"}})
    result = quick(equip(project(spec, TALKS_TO_OPENAI), ECHO), "--no-preflight")
    calm, limited = (result.cells[("answers", scenario)]["trials"][0] for scenario in ("calm", "limit"))
    assert calm["answer"].startswith("200 ")
    assert "you said hi" in calm["answer"]
    assert limited["answer"].startswith("429 ")
    assert met(limited) == [("llm", "rate_limit", "met")]
