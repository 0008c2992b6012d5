"""Ways in to a real sandbox: a program of this machine reaches the agent's port, and nothing else."""

import json
import socket
import threading
import time
from urllib.request import urlopen

import pytest
from world_runs import ran, spec_of

from free_port import free_port
from holdfast.errors import UserError

SERVER = """
    import os, socket, sys, threading
    here = socket.create_server((sys.argv[1], int(sys.argv[2])))
    here.settimeout(25)
    there, _ = here.accept()
    heard = there.recv(99)
    there.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\nhello from inside")
    there.close()
    print("asked", heard.split()[1].decode())
"""


def asking(url, until_s=25):
    """Asks until somebody answers, beside the run; what was said."""
    said = []

    def ask():
        end = time.monotonic() + until_s
        while not said and time.monotonic() < end:
            try:
                with urlopen(url, timeout=5) as reply:
                    said.append(reply.read().decode())
            except OSError:
                time.sleep(0.05)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread, said


def ingress(*ports, **more):
    return {"ingress": {"allow": [{"from": "host", "to_port": port} for port in ports], **more}}


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_this_machine_reaches_the_agent(tmp_path, host):
    port = free_port()
    thread, said = asking(f"http://127.0.0.1:{port}/way")
    command = f"python3 server.py {host} {port}"
    found = ran(tmp_path, spec_of(command, network=ingress(port)), files={"server.py": SERVER})
    thread.join()
    assert (found.only.error, found.text, said) == ("", "asked /way", ["hello from inside"])
    (told,) = [one for one in found.only.isolation if one.feature == "network.ingress"]
    assert told.enforced
    assert told.why == f"127.0.0.1:{port} reaches port {port} of the agent"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)


def test_a_port_that_is_not_named_is_closed_and_services_are_not_led_out(tmp_path):
    """A service has an address of its own inside: a way to its port meets nobody."""
    port, other = free_port(), free_port()
    services = [{"name": "api", "type": "http_mock", "ports": [port], "routes": [{"path": "/", "response": "ours"}]}]
    thread, said = asking(f"http://127.0.0.1:{port}/", until_s=4)
    unnamed, unsaid = asking(f"http://127.0.0.1:{other}/", until_s=4)
    command = f"curl -s http://api:{port}/; python3 -m http.server {other} >/dev/null 2>&1 & sleep 4; echo done"
    found = ran(tmp_path, spec_of(command, network=ingress(port), services=services))
    thread.join()
    unnamed.join()
    assert found.text.splitlines()[0] == "oursdone"
    assert said == unsaid == []


def test_a_way_that_cannot_be_had_is_an_error_for_the_strict(tmp_path):
    spec = spec_of("echo hi", network={"ingress": {"default": "allow"}})
    with pytest.raises(UserError, match=r"network\.ingress"):
        ran(tmp_path, spec, strict_world=True)


def test_the_report_says_where_it_listens(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = ran(tmp_path, spec_of("echo hi", network=ingress(port)))
    (told,) = [one for one in found.only.isolation if one.feature == "network.ingress"]
    assert told.enforced
    assert told.why.endswith(f" reaches port {port} of the agent")
    assert f"127.0.0.1:{port} " not in told.why
    assert any(f"port {port} " in note and told.why in note for note in found.only.notes)
    stored = json.loads((found.folder / "ended.json").read_text())["isolation"]
    assert {"feature": "network.ingress", "enforced": True, "why": told.why} in stored
