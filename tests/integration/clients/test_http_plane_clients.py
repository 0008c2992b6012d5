"""Real clients, led to the proxy by their environment alone, as a launched agent's are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from holdfast.model.scenario import Injection
from holdfast.planes.http.trust import NODE_PRELOAD, add_node_preload

URLLIB = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
REQUESTS = "import sys, requests; print(requests.get(sys.argv[1]).text)"
HTTPX = "import sys, httpx; print(httpx.get(sys.argv[1]).text)"
AIOHTTP = """
import asyncio, sys, aiohttp
async def main():
    async with aiohttp.ClientSession(trust_env=True) as session, session.get(sys.argv[1]) as reply:
        print(await reply.text())
asyncio.run(main())
"""
NODE = """
const http = require('http'), tls = require('tls'), proxy = new URL(process.env.HTTPS_PROXY)
const url = new URL(process.argv[1])
const auth = 'Basic ' + Buffer.from(`${proxy.username}:${proxy.password}`).toString('base64')
const at = { host: proxy.hostname, port: proxy.port, headers: { 'proxy-authorization': auth } }
const say = reply => { let all = ''; reply.on('data', d => all += d); reply.on('end', () => console.log(all)) }
if (url.protocol === 'http:') http.get({ ...at, path: url.href }, say)
else http.request({ ...at, method: 'CONNECT', path: url.host }).on('connect', (_, socket) => {
  const secure = tls.connect({ socket, servername: url.hostname }, () =>
    http.get({ createConnection: () => secure, path: url.pathname, headers: { connection: 'close' } }, say))
  secure.on('error', e => { console.error(e.code); process.exit(1) })
}).end()
"""
NODE_FETCH = "fetch(process.argv[1]).then(r => r.text()).then(t => console.log(t), e => { console.error(e); throw e })"
NODE_GET = """
const url = new URL(process.argv[1]), lib = require(url.protocol === 'http:' ? 'http' : 'https')
const agent = process.argv[2] ? new lib.Agent({ keepAlive: true }) : undefined
lib.get(url, { agent }, reply => {
  let all = ''; reply.on('data', d => all += d); reply.on('end', () => { console.log(all); process.exit() })
})
"""
NODE_MODULE = "import https from 'node:https'; import http from 'node:http'; const url = new URL(process.argv[1]);" + (
    "(url.protocol === 'http:' ? http : https).get(url, r => r.pipe(process.stdout))"
)
CLIENTS = {
    "node fetch": ["node", "-e", NODE_FETCH, "--"],
    "node get": ["node", "-e", NODE_GET, "--"],
    "node module": ["node", "--input-type=module", "-e", NODE_MODULE, "--"],
    "urllib": [sys.executable, "-c", URLLIB],
    "requests": [sys.executable, "-c", REQUESTS],
    "httpx": [sys.executable, "-c", HTTPX],
    "aiohttp": [sys.executable, "-c", AIOHTTP],
    "curl": ["curl", "-sS"],
    "node": ["node", "-e", NODE, "--"],
}


def run(client, url, environ):
    command = CLIENTS[client]
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {client} here")
    return subprocess.run([*command, url], env=environ, capture_output=True, text=True, timeout=20)


@pytest.mark.parametrize("scheme", ["plain", "secure"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_meets_the_fault_by_its_environment_alone(request, bench, client, scheme):
    server = request.getfixturevalue(scheme)
    fault = Injection("tool", "*", "phantom_success", match_url=f"{server.url}/*")
    with bench.trial([fault]) as trial:
        ended = run(client, server.url + "/rows", trial.environ)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {"status": "ok"}
    assert trial.met == [("http", "phantom_success", "met")]
    assert trial.context.notes == []
    assert server.seen == []


@pytest.mark.parametrize(("client", "variable"), [("node", "NODE_EXTRA_CA_CERTS"), ("curl", "CURL_CA_BUNDLE")])
def test_without_its_variable_a_client_refuses_our_certificate(bench, secure, client, variable):
    with bench.trial(intercepted=[f"{secure.url}/*"]) as trial:
        environ = {name: value for name, value in trial.environ.items() if name not in (variable, "SSL_CERT_FILE")}
        ended = run(client, secure.url + "/rows", environ)
        (event,) = trial.events()
    assert ended.returncode != 0
    assert event.error_type == "certificate_refused"
    assert any("rejected Holdfast's certificate" in note for note in trial.context.notes)


def test_git_reads_its_own_variable(bench, secure):
    if shutil.which("git") is None:
        pytest.skip("no git here")
    with bench.trial(intercepted=[f"{secure.url}/*"]) as trial:
        ended = subprocess.run(
            ["git", "ls-remote", secure.url + "/repo.git"],
            env=trial.environ,
            capture_output=True,
            text=True,
            timeout=60,
        )
        (event, *_) = trial.events()
    assert "certificate" not in ended.stderr
    assert event.tool.startswith(f"GET {secure.url}/repo.git/info/refs")


@pytest.mark.parametrize("scheme", ["plain", "secure"])
@pytest.mark.parametrize("client", ["node fetch", "node get", "node module"])
def test_a_call_of_node_that_no_fault_is_on_passes(request, bench, client, scheme):
    server = request.getfixturevalue(scheme)
    with bench.trial(intercepted=[f"{server.url}/*"]) as trial:
        ended = run(client, server.url + "/rows", trial.environ)
        events = trial.events()
    assert ended.returncode == 0, ended.stderr
    assert len(server.seen) == 1
    assert [event.tool for event in events] == [f"GET {server.url}/rows"]


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "192.0.2.7"])
@pytest.mark.parametrize("client", ["node fetch", "node get", "node module"])
def test_node_checks_the_certificate_of_an_address_against_the_address(bench, client, host):
    url = f"https://{host}:8443"
    with bench.trial([Injection("tool", "*", "phantom_success", match_url=f"{url}/*")]) as trial:
        ended = run(client, url + "/rows", trial.environ)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {"status": "ok"}
    assert trial.met == [("http", "phantom_success", "met")]


@pytest.mark.parametrize("client", ["node fetch", "node get", "node module"])
def test_node_takes_a_certificate_through_the_proxy_if_it_takes_it_without(bench, secure, client):
    """The server's own certificate is for localhost: the proxy does not look into these connections."""
    by_address = secure.url.replace("localhost", "127.0.0.1")
    with bench.trial(intercepted=[], declared=[f"{secure.url}/*", f"{by_address}/*"]) as trial:
        led = {**trial.environ, "NODE_EXTRA_CA_CERTS": os.environ["SSL_CERT_FILE"]}
        alone = {name: value for name, value in led.items() if "proxy" not in name.lower()}
        for environ in (led, alone):
            assert run(client, secure.url + "/rows", environ).returncode == 0
            refused = run(client, by_address + "/rows", environ)
            assert refused.returncode != 0
            assert "ERR_TLS_CERT_ALTNAME_INVALID" in refused.stderr


def test_an_agent_of_its_own_is_led_too(bench, secure):
    fault = Injection("tool", "*", "error", {"error_code": 503}, match_url=f"{secure.url}/*")
    with bench.trial([fault]) as trial:
        subprocess.run([*CLIENTS["node get"], secure.url + "/rows", "own"], env=trial.environ, timeout=20)
    assert trial.met == [("http", "error", "met")]


@pytest.mark.parametrize("client", ["node fetch", "node get"])
def test_node_goes_past_the_proxy_where_it_should_and_without_variables(bench, plain, client):
    with bench.trial(intercepted=[f"{plain.url}/*"]) as trial:
        past = {**trial.environ, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
        none = {name: value for name, value in trial.environ.items() if "proxy" not in name.lower()}
        for environ in (past, none):
            assert run(client, plain.url + "/rows", environ).returncode == 0
        assert trial.context.trace == []
    assert len(plain.seen) == 2


def test_node_options_of_the_user_stay(bench, plain, tmp_path):
    own = tmp_path / "own file.cjs"
    own.write_text("globalThis.mine = 'yes'")
    with bench.trial(intercepted=[f"{plain.url}/*"]) as trial:
        ours = trial.environ["NODE_OPTIONS"]
        asked = {**trial.environ, "NODE_OPTIONS": add_node_preload(f'--require "{own}"', str(NODE_PRELOAD))}
        ended = subprocess.run(
            ["node", "-e", "console.log(mine); fetch(process.argv[1])", "--", plain.url + "/rows"],
            env=asked,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert len(trial.events()) == 1
    assert ended.stdout == "yes\n"
    assert add_node_preload(ours, str(NODE_PRELOAD)) == ours
