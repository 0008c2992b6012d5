"""Real clients, led to the proxy by their environment alone, as a launched agent's are."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from holdfast.model.spec import Injection

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
CLIENTS = {
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
    return subprocess.run([*command, url], env=environ, capture_output=True, text=True, timeout=60)


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
    with bench.trial(looked_into=[f"{secure.url}/*"]) as trial:
        environ = {name: value for name, value in trial.environ.items() if name not in (variable, "SSL_CERT_FILE")}
        ended = run(client, secure.url + "/rows", environ)
        (event,) = trial.events()
    assert ended.returncode != 0
    assert event.error_type == "certificate_refused"
    assert any("refused our certificate" in note for note in trial.context.notes)


def test_git_reads_its_own_variable(bench, secure):
    if shutil.which("git") is None:
        pytest.skip("no git here")
    with bench.trial(looked_into=[f"{secure.url}/*"]) as trial:
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
