"""Node's own clients meet faults at URLs, without a library that knows of proxies."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from files1 import http_agent, tell

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node here")

FETCH = "fetch(process.argv[2]).then(r => console.log('status ' + r.status), e => console.log('failed ' + e.cause))\n"
GET = "require('http').get(process.argv[2], r => { console.log('status ' + r.statusCode); process.exit() })\n"
SPEC = """
version: "1.0"
agent: {type: command, command: "node bot.cjs URL", env: {NODE_OPTIONS: --no-warnings}}
golden_prompts: [go]
contract:
  name: C
  invariants: [{id: ends, description: d, type: contains, value: status}]
chaos_matrix:
  - name: calm
  - {name: down, tool_faults: [{tool: "*", match_url: "URL", mode: error}]}
"""
WORLD = """
setup: {files: [{path: bot.cjs, source: bot.cjs}]}
services: [{name: shop, type: http_mock, routes: [{method: GET, path: /price, response: {status: 200, body: "5"}}]}]
network: {dns_overrides: {shop.example: shop}}
"""


@pytest.mark.parametrize("source", [FETCH, GET], ids=["fetch", "get"])
def test_a_fault_at_a_url_is_met_and_the_doctor_knows(tmp_path: Path, source: str) -> None:
    (tmp_path / "bot.cjs").write_text(source)
    with http_agent(lambda request: {"output": "5"}) as shop:
        (tmp_path / "holdfast.yaml").write_text(SPEC.replace("URL", f"{shop.url}/price"))
        told = tell(tmp_path, "contract", "run", "--json")
        doctor = tell(tmp_path, "doctor")
    assert told.code == 0, told
    assert (told.trial("ends", "calm")["answer"], told.trial("ends", "down")["answer"]) == ("status 200", "status 503")
    assert doctor.code == 0, doctor


def test_a_fault_at_a_url_is_met_in_a_sandbox(tmp_path: Path) -> None:
    (tmp_path / "bot.cjs").write_text(FETCH)
    (tmp_path / "holdfast.yaml").write_text(SPEC.replace("URL", "http://shop.example/price") + WORLD)
    told = tell(tmp_path, "contract", "run", "--json")
    assert told.code == 0, told
    assert (told.trial("ends", "calm")["answer"], told.trial("ends", "down")["answer"]) == ("status 200", "status 503")
