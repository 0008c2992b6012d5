"""Makes a project folder and runs `holdfast` in it: as a command of its own, or quickly inside this process."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from msgspec.structs import replace

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))

AGENT = """
def search(query):
    return "a source says " + query


def ask(prompt):
    try:
        return search(prompt)
    except Exception as failure:
        return f"sorry, no source: {failure}"
"""
"""An agent with one tool, which says so when the tool fails."""

CALM = {"name": "calm"}
DOWN = {"name": "down", "tool_faults": [{"tool": "search", "mode": "error", "error_code": 503}]}


def rule(id: str, type: str = "contains", **settings: Any) -> dict[str, Any]:
    """An entry of `contract.invariants`."""
    return {"id": id, "type": type, "description": f"rule {id}", **settings}


def tool_fault(mode: str = "error", **settings: Any) -> dict[str, Any]:
    """A scenario called `chaos` with one fault on the tool `search`."""
    return {"name": "chaos", "tool_faults": [{"tool": "search", "mode": mode, **settings}]}


def contract(
    rules: list[dict[str, Any]],
    matrix: list[dict[str, Any]] | None = None,
    *,
    prompts: tuple[str, ...] = ("hello",),
    agent: Mapping[str, Any] | None = None,
    isolation: str | None = None,
    **top: Any,
) -> dict[str, Any]:
    """A whole spec; the agent is `agent.py` with its tool, unless told otherwise."""
    section = {"type": "python", "endpoint": "agent:ask", "tools": ["agent:search"]} if agent is None else dict(agent)
    made: dict[str, Any] = {"name": "The contract", "invariants": rules}
    if isolation is not None:
        made["isolation"] = isolation
    made["chaos_matrix"] = [CALM] if matrix is None else matrix
    return {"version": "2.0", "agent": section, "golden_prompts": list(prompts), "contract": made, **top}


def python(**more: Any) -> dict[str, Any]:
    """The agent section of the usual Python agent, with additions."""
    return {"type": "python", "endpoint": "agent:ask", "tools": ["agent:search"], **more}


@dataclass(frozen=True)
class Ended:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run_here(folder: Path, args: tuple[str, ...], environ: Mapping[str, str]) -> tuple[int, str, str]:
    """The command line inside this process: what `holdfast` does after Python has started."""
    from holdfast.cli.main import run

    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with patch.dict(os.environ, environ), chdir(folder), redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        code = run(args)
    out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]  # a BytesIO
    return code, out, err


class Result(Ended):
    """What became of a command, and the JSON report of a contract that it may have printed."""

    @property
    def part(self) -> Any:
        """The contract's part of the JSON report."""
        assert "parts" in self.json, self.out + self.err
        return self.json["parts"]["contract"]

    @property
    def cells(self) -> dict[tuple[str, str], Any]:
        """Cells of the JSON report by (invariant, scenario)."""
        return {(cell["invariant"], cell["scenario"]): cell for cell in self.part["cells"]}

    @property
    def outcomes(self) -> dict[tuple[str, str], str]:
        return {key: cell["outcome"] for key, cell in self.cells.items()}

    @property
    def cell(self) -> Any:
        """The only cell there is."""
        (cell,) = self.part["cells"]
        return cell

    @property
    def trial(self) -> Any:
        """The only trial of the only cell there is."""
        (trial,) = self.cell["trials"]
        return trial

    @property
    def trials(self) -> list[Any]:
        return [trial for cell in self.part["cells"] for trial in cell["trials"]]


class Project:
    """A folder with a spec and an agent, and the commands run in it."""

    def __init__(self, folder: Path, spec: Mapping[str, Any] | str, agent: str = AGENT) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.write(spec)
        (folder / "agent.py").write_text(agent)

    def write(self, spec: Mapping[str, Any] | str, name: str = "holdfast.yaml") -> None:
        text = spec if isinstance(spec, str) else yaml.safe_dump(spec, sort_keys=False)
        (self.folder / name).write_text(text)

    def read(self, name: str) -> str:
        """A file of the project; empty if it is not there."""
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def viewed(self, question: str) -> Any:
        """What the viewer answers to a question about the runs of this folder."""
        from holdfast.web.api import Api
        from holdfast.web.opened_runs import Project as Viewed

        with closing(Viewed(self.folder / ".holdfast" / "runs", os.environ)) as project:
            while project.list.get_known().left != 0:
                time.sleep(0.01)
            reply = Api(project).get(question)
        assert reply.status == 200, reply
        return json.loads(reply.body)

    # -- running --------------------------------------------------------------------------------
    def cli(self, *args: str, env: Mapping[str, str] | None = None) -> Result:
        """The command line inside this process."""
        return Result(*run_here(self.folder, args, env or {}))

    def run(self, *args: str, env: Mapping[str, str] | None = None) -> Result:
        """`holdfast contract run --json`, without the HTML page."""
        return self.cli("contract", "run", "--json", "--no-report", *args, env=env)

    def show(self, *args: str, env: Mapping[str, str] | None = None) -> Result:
        """`holdfast contract run` as a pipe sees it."""
        return self.cli("contract", "run", *args, env=env)

    def command(self, *args: str, env: Mapping[str, str] | None = None) -> Result:
        """The real command, in a process of its own."""
        done = subprocess.run(
            [HOLDFAST, *args], cwd=self.folder, env={**os.environ, **(env or {})}, capture_output=True, timeout=60
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *args: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """The real command, left running in a process group of its own."""
        return subprocess.Popen(
            [HOLDFAST, *args],
            cwd=self.folder,
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=heeds_interrupts,
        )

    # -- looking --------------------------------------------------------------------------------
    def stored(self, name: str, run: str = "0001") -> list[Any]:
        """The whole lines of a file of a run."""
        path = self.folder / ".holdfast" / "runs" / run / name
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def contract_trials(self, run: str = "0001") -> list[Any]:
        """The trials of the matrix that were begun, controls left out."""
        return [trial for trial in self.stored("trials.jsonl", run) if trial["kind"] == "contract"]

    def lines(self, name: str) -> list[str]:
        """What the agent wrote into a file beside itself."""
        return self.read(name).splitlines()


MakeProject = Callable[..., Project]
"""The fixture `project`: a spec and the source of an agent to a Project."""


def verdict_line(out: str) -> str:
    """The line of a summary that begins with the verdict."""
    words = ("PASS ", "FAIL ", "INTERRUPTED ", "ERROR ", "UNPROVEN ", "SHARD ", "RUNNING ")
    return next(line for line in reversed(out.splitlines()) if line.startswith(words))


def rundir(made: Project, run: str = "0001") -> Path:
    return made.folder / ".holdfast" / "runs" / run


def unseal(made: Project, run: str = "0001") -> None:
    """Leaves the run as kill -9 does after a resume: its files have no seal."""
    from holdfast.store.rundir import RunDir

    path = RunDir(rundir(made, run))
    ended = path.read_end()
    assert ended is not None
    path.write_end(replace(ended, complete=False, sealed={}))


def forget_end(path: Path) -> None:
    """Leaves the run in that folder as kill -9 does in its first process."""
    for name in ("ended.json", "score.json", "report.html"):
        (path / name).unlink(missing_ok=True)


def facts(result: Result) -> list[Any]:
    """The cells, without what reads the clock."""
    return [
        {
            **{key: value for key, value in cell.items() if key not in ("trials", "rate")},
            "trials": [(t["id"], t["answer"], t["outcome"], t["faults"]) for t in cell["trials"]],
        }
        for cell in result.part["cells"]
    ]


def heeds_interrupts() -> None:
    """A shell that runs the tests in the background has its children ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def finish(process: subprocess.Popen[bytes], timeout_s: float = 30) -> Result:
    """Waits for a command that was left running."""
    out, err = process.communicate(timeout=timeout_s)
    return Result(process.returncode, out.decode(), err.decode())


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """kill -9 to the command and everything in its process group."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=10)


def wait_until(true: Callable[[], object], timeout_s: float = 20) -> None:
    """Waits for something to become true; fails if it does not."""
    end = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


# -- a running HTTP agent -------------------------------------------------------------------------
@dataclass(frozen=True)
class Asked:
    """One request as the server saw it."""

    path: str
    body: str
    headers: Mapping[str, str]

    @property
    def prompt(self) -> str:
        return str(json.loads(self.body)["input"])


Reply = tuple[int, str | bytes]
"""Status and body."""


class Server:
    """An HTTP agent on a port of its own; `requests` has all it was asked."""

    def __init__(self, answer: Callable[[Asked], Reply]) -> None:
        self.requests: list[Asked] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
                asked = Asked(self.path, body, {k.lower(): v for k, v in self.headers.items()})
                server.requests.append(asked)
                status, said = answer(asked)
                data = said if isinstance(said, bytes) else said.encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """A test's output is not the place for it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def section(self, **more: Any) -> dict[str, Any]:
        """An agent section for this server."""
        return {"type": "http", "endpoint": f"{self.url}/ask", **more}

    def asked(self, path: str = "/ask") -> list[Asked]:
        return [request for request in self.requests if request.path == path]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


Serve = Callable[[Callable[[Asked], Reply]], Server]
"""The fixture `serve`: how it answers to a running agent."""


@contextmanager
def serving(answer: Callable[[Asked], Reply]) -> Iterator[Server]:
    """An HTTP agent that runs while the body does."""
    server = Server(answer)
    try:
        yield server
    finally:
        server.close()


def says(text: str) -> Reply:
    """A good reply."""
    return 200, json.dumps({"output": text})
