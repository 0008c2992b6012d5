"""The services of a custom script's context, reached where the script runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from world_runs import BACKENDS, ran, spec_of

SCRIPT = r"""
import json, socket, sys

def said(service, data):
    with socket.create_connection((service["host"], service["port"]), timeout=10) as way:
        way.sendall(data)
        return way.recv(16).decode("latin-1")

services = json.load(sys.stdin)["services"]
db = said(services["db"], bytes([0, 0, 0, 8, 4, 210, 22, 47]))
cache = said(services["cache"], b"PING\r\n")
smtp = said(services["smtp"], b"GET / HTTP/1.1\r\nHost: smtp\r\nConnection: close\r\n\r\n")
right = db in ("N", "S") and "PONG" in cache and "HTTP/1.1 200" in smtp
print(json.dumps({"passed": right, "reason": repr((db, cache, smtp))}))
"""
SERVICES = [
    {"name": "db", "image": "postgres:16", "env": {"POSTGRES_PASSWORD": "s3cret"}},
    {"name": "cache", "image": "redis:7"},
    {"name": "smtp", "type": "http_mock", "routes": [{"method": "GET", "path": "/", "status": 200}]},
]


WEATHERS = [[], [{"service": "db", "mode": "down"}, {"service": "cache", "mode": "down"}]]


@BACKENDS
@pytest.mark.parametrize("faults", WEATHERS)
def test_services_are_reached_on_the_host_and_in_the_sandbox(tmp_path: Path, backend: str, faults: list[Any]) -> None:
    rules = {
        where: {"description": "d", "check": {"type": "custom", "script": "v.py", "runs_in": where}}
        for where in ("host", "sandbox")
    }
    sections = {"chaos_matrix": [{"name": "w", "service_faults": faults}]} if faults else {}
    spec = spec_of("echo done", services=SERVICES, invariants=rules, **sections)
    done = ran(tmp_path, spec, backend=backend, files={"v.py": SCRIPT})
    assert {v.invariant: v.reason for v in done.verdicts if v.outcome != "pass"} == {}
