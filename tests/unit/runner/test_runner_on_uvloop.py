"""Which loop a run has, and a run on uvloop: a call that passes, one that a fault hits."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import uvloop

from holdfast.errors import UsageError
from holdfast.model.events import Event
from holdfast.plan.options import RunOptions
from holdfast.runner.executors import VARIABLE, choose_loop_factory
from holdfast.runner.job import Job
from holdfast.runner.run import run
from holdfast.runner.start import begin
from holdfast.spec import load

AGENT = """
import os, sys, urllib.error, urllib.request
body = b'{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'
asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
asked.add_header("Content-Type", "application/json")
try:
    print("came:", "well met" in urllib.request.urlopen(asked).read().decode())
except urllib.error.HTTPError as failed:
    print("status:", failed.code)
"""
SPEC = """
agent: {{type: command, command: "{python} agent.py"}}
models: {{"*": {{base_url: "http://127.0.0.1:{port}/v1"}}}}
golden_prompts: ["hello"]
contract: {{name: c, invariants: [{{id: r, type: contains, value: ":", description: x}}]}}
chaos_matrix: [{{name: calm}}, {{name: down, llm_faults: [{{mode: server_error}}]}}]
"""
GOOD = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "well met"}, "finish_reason": "stop"}]}'


class _Model(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(GOOD)))
        self.end_headers()
        self.wfile.write(GOOD)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture
def job(tmp_path: Path, port: int) -> Job:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "holdfast.yaml").write_text(SPEC.format(port=port, python=sys.executable))
    spec, _ = load(tmp_path / "holdfast.yaml", environ={})
    return Job(spec, RunOptions(preflight=False), {"OPENAI_API_KEY": "k", VARIABLE: "1"})


def test_a_run_on_uvloop_passes_a_call_and_meets_a_fault(job: Job, tmp_path: Path) -> None:
    loops: set[type] = set()

    def listen(event: Event) -> None:
        loops.add(type(asyncio.get_running_loop()))

    rundir = begin(job, tmp_path / "runs")
    run(job, rundir, listen)
    assert loops == {uvloop.Loop}
    stored = "".join(path.read_text() for path in rundir.list_observation_files())
    assert "came: True" in stored
    assert "status: 5" in stored


@pytest.mark.parametrize("environ", [{}, {VARIABLE: ""}, {VARIABLE: "0"}])
def test_uvloop_that_nobody_asked_for_is_not_used(environ: dict[str, str]) -> None:
    assert choose_loop_factory(environ) is None


def test_another_word_than_1_or_0_is_an_error() -> None:
    with pytest.raises(UsageError) as raised:
        choose_loop_factory({VARIABLE: "false"})
    assert raised.value.code == "variable-invalid"


def test_uvloop_that_is_asked_for_and_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with pytest.raises(UsageError) as raised:
        choose_loop_factory({VARIABLE: "1"})
    assert raised.value.code == "extra-missing"
