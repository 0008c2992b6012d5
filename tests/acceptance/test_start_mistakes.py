"""A mistake in how the agent is started: exit 4, with the line of the key, whatever the kind of agent and the mistake.

Only a command that starts and then fails is a result of the agent: it may have been asked.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from itertools import product
from typing import Any

import pytest
from cli import MakeProject, Project, contract, rule

from holdfast.agents.http import readiness

SOUND = "def ask(prompt):\n    return 'ok'\n"
SERVER = """
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), BaseHTTPRequestHandler).serve_forever()
"""
FILES = {
    "sound.py": SOUND,
    "broken.py": f"import no_such_library\n{SOUND}",
    "raises.py": "import helper\n",
    "helper.py": "\nraise ValueError('no key')\n",
    "syntax.py": "def ask(prompt:\n",
    "ends.py": "import os\nos._exit(1)\n",
    "exits.py": "raise SystemExit(1)\n",
    "idle.py": "import time\ntime.sleep(60)\n",
    "value.py": "ask = 3\n",
    "server.py": SERVER,
    "denied.sh": "#!/bin/sh\necho ok\n",
    "foreign.sh": "#!/no/such/interpreter\n",
}
PYTHON = {
    "misspelt module": ("soundd:ask", "agent-import-failed"),
    "misspelt attribute": ("sound:aks", "agent-config-invalid"),
    "import error": ("broken:ask", "agent-import-failed"),
    "raises": ("raises:ask", "agent-import-failed"),
    "syntax": ("syntax:ask", "agent-import-failed"),
    "ends at once": ("ends:ask", "agent-import-failed"),
    "exits at once": ("exits:ask", "agent-import-failed"),
    "not callable": ("value:ask", "agent-config-invalid"),
}
SERVERS = {
    "missing program": ("uvicron sound:ask", "agent-not-started"),
    "misspelt module": (f"{sys.executable} -m uvicron sound:ask", "agent-not-ready"),
    "misspelt attribute": (f"{sys.executable} -c 'from sound import aks'", "agent-not-ready"),
    "misspelt script": (f"{sys.executable} servre.py", "agent-not-ready"),
    "import error": (f"{sys.executable} broken.py", "agent-not-ready"),
    "exits at once": ("exit 1", "agent-not-ready"),
    "open quote": ('echo "ok', "agent-not-ready"),
    "port never opened": (f"{sys.executable} idle.py", "agent-not-ready"),
    "permission denied": ("./denied.sh", "agent-not-started"),
    "wrong interpreter": ("./foreign.sh", "agent-not-started"),
}
COMMANDS = {
    "missing program": ("uvicron sound", 4),
    "misspelt module": (f"{sys.executable} -m soundd", 4),
    "misspelt script": (f"{sys.executable} soundd.py", 4),
    "permission denied": ("./denied.sh", 4),
    "wrong interpreter": ("./foreign.sh", 4),
    "open quote": ('echo "ok', 4),
    "open bracket": ("echo ok; (echo", 4),
    "open if": ("if true; then echo ok", 4),
    "open quote in a later line": ("echo ok\necho 'ok", 4),
    "import error": (f"{sys.executable} broken.py", 1),
    "exits at once": ("exit 1", 1),
    "prints and exits like a shell that cannot parse": ("echo ok; exit 2", 1),
}
WORLD: dict[str, Any] = {"network": {"egress": {"default": "deny"}}}


def made(project: MakeProject, agent: dict[str, Any], *, boxed: bool = False) -> Project:
    spec = contract([rule("answers", "completes", severity="critical")], agent=agent, **(WORLD if boxed else {}))
    desk = project(spec)
    for name, text in FILES.items():
        (desk.folder / name).write_text(text)
    (desk.folder / "foreign.sh").chmod(0o755)
    return desk


def line_of(desk: Project, key: str) -> int:
    lines = (desk.folder / "holdfast.yaml").read_text().splitlines()
    return next(at for at, line in enumerate(lines, 1) if line.strip().startswith(f"{key}:"))


@pytest.mark.parametrize(
    ("mistake", "how"),
    # An inline agent that ends its process ends Holdfast's own.
    sorted({*product(PYTHON, ("fresh", "inline", "boxed"))} - {("ends at once", "inline")}),
)
def test_a_python_agent(project: MakeProject, mistake: str, how: str) -> None:
    endpoint, code = PYTHON[mistake]
    isolation = {"isolation": "inline"} if how == "inline" else {}
    desk = made(project, {"type": "python", "endpoint": endpoint, **isolation}, boxed=how == "boxed")
    result = desk.cli("contract", "run", "--no-report")
    assert (result.code, f"[{code}]" in result.err) == (4, True), result.err
    assert f"holdfast.yaml:{line_of(desk, 'endpoint')}: " in result.err
    assert "Traceback" not in result.err
    assert "importlib" not in result.err


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("mistake", SERVERS)
def test_a_server_that_holdfast_starts(
    project: MakeProject, monkeypatch: pytest.MonkeyPatch, mistake: str, boxed: bool
) -> None:
    monkeypatch.setattr(readiness, "READY_S", 3.0)
    command, code = SERVERS[mistake]
    endpoint = "http://localhost:{port}/"
    desk = made(project, {"type": "http", "endpoint": endpoint, "command": command}, boxed=boxed)
    result = desk.cli("contract", "run", "--no-report")
    assert (result.code, f"[{code}]" in result.err) == (4, True), result.err
    assert f"holdfast.yaml:{line_of(desk, 'command')}: " in result.err


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("mistake", COMMANDS)
def test_a_command(project: MakeProject, mistake: str, boxed: bool) -> None:
    command, status = COMMANDS[mistake]
    desk = made(project, {"type": "command", "command": command}, boxed=boxed)
    result = desk.cli("contract", "run", "--no-report")
    assert (result.code, "[agent-not-started]" in result.err) == (status, status == 4), result.err
    if status == 4:
        assert f"holdfast.yaml:{line_of(desk, 'command')}: " in result.err


@pytest.mark.skipif(
    subprocess.run(["sh", "-c", "command -v [["], capture_output=True).returncode == 0, reason="this sh is a bash"
)
@pytest.mark.parametrize("command", ["echo ok &> log; cat log", "[ a == a ] && echo ok", "cat <(echo ok)"])
def test_a_command_written_for_bash(project: MakeProject, command: str) -> None:
    desk = made(project, {"type": "command", "command": command})
    result = desk.cli("contract", "run", "--no-report")
    assert (result.code, "[agent-not-started]" in result.err) == (4, True), result.err
    quoted = f"bash -c {shlex.quote(command)}"
    assert made(project, {"type": "command", "command": quoted}).cli("contract", "run", "--no-report").code == 0


@pytest.mark.parametrize("binary", [("no-such-program", ()), (sys.executable, ("soundd.py",)), ("./foreign.sh", ())])
def test_a_binary(project: MakeProject, binary: tuple[str, tuple[str, ...]]) -> None:
    desk = made(project, {"type": "command", "binary": binary[0], "args": list(binary[1])})
    result = desk.cli("contract", "run", "--no-report")
    assert (result.code, "[agent-not-started]" in result.err) == (4, True), result.err
