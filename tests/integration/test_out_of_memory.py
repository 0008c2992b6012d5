"""Agents that use more memory than they may: that is how they end, and nothing of ours ends with them."""

import os
import textwrap
from pathlib import Path

import pytest
from sandbox_kit import ENV, in_sandbox
from world_runs import BACKENDS, ran, spec_of

from holdfast.model.world import Resources
from holdfast.world.sandbox import limits

pytestmark = [
    pytest.mark.root,  # other users rarely get a control group of their own
    pytest.mark.skipif("memory" not in limits.find_parents(), reason="no control group for memory can be made here"),
]

LIMIT = {"memory": "64Mi"}
WHY = "it used more than its 64Mi of memory (resources.memory)"
EATS = "held = [bytearray(b'x' * 1_000_000) for n in range(200)]"
MEMFD = "import os; fd = os.memfd_create('m'); [os.write(fd, b'x' * 1_000_000) for n in range(200)]"
FILLS = "head -c 200000000 /dev/zero >"
WAYS = {
    "allocation": f'python3 -c "{EATS}"',
    "a file in /tmp": f"exec {FILLS} /tmp/big",
    "a file in the workspace": f"exec {FILLS} big",
    "a file in shared memory": f"{FILLS} /dev/shm/big",
    "memfd": f'python3 -c "{MEMFD}"',
    "below a shell": f'cd /tmp && python3 -c "{EATS}"',
}


def ending_of(seen):
    assert seen.error == ""
    return seen.ending, seen.turns[-1].detail


@pytest.mark.parametrize("way", WAYS)
def test_a_command_that_uses_too_much(tmp_path, way):
    found = ran(tmp_path, spec_of(f"echo begun; {WAYS[way]}", resources=LIMIT))
    assert ending_of(found.only) == ("out_of_memory", WHY)
    assert found.lines == ["begun"]
    assert found.case.status == "fail"


ALLOCATES = """
    def answer(prompt):
        held = [bytearray(b"x" * 1_000_000) for n in range(400)]
"""
WRITES = """
    def answer(prompt):
        with open("/tmp/big", "wb") as big:
            for n in range(400):
                big.write(b"x" * 1_000_000)
"""
AT_IMPORT = """
    held = [bytearray(b"x" * 1_000_000) for n in range(400)]
    def answer(prompt):
        return "here"
"""


@pytest.mark.parametrize("code", [ALLOCATES, WRITES, AT_IMPORT], ids=["allocates", "writes", "at import"])
def test_a_python_agent_that_uses_too_much(tmp_path, code):
    agent = {"type": "python", "endpoint": "mine:answer"}
    found = ran(tmp_path, spec_of(agent, resources={"memory": "128Mi"}), files={"mine.py": code})
    assert ending_of(found.only) == ("out_of_memory", WHY.replace("64", "128"))


SERVER = """
    import os
    from http.server import BaseHTTPRequestHandler, HTTPServer
    {before}
    class Desk(BaseHTTPRequestHandler):
        def do_POST(self):
            held = [bytearray(b"x" * 1_000_000) for n in range(200)]
    HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Desk).serve_forever()
"""


@pytest.mark.parametrize(
    ("before", "when"), [("", ""), (EATS, " before it was ready")], ids=["when asked", "when started"]
)
def test_a_server_that_uses_too_much(tmp_path, before, when):
    agent = {"type": "http", "command": "exec python3 mine.py", "endpoint": "http://127.0.0.1:{port}/"}
    files = {"mine.py": textwrap.dedent(SERVER).format(before=before)}
    found = ran(tmp_path, spec_of(agent, resources=LIMIT), files=files)
    assert ending_of(found.only) == ("out_of_memory", WHY + when)


def test_the_next_trial_has_its_memory(tmp_path):
    command = f"test $PARAM_BIG = no && echo fine || exec {FILLS} /tmp/big"
    sizes = {"matrix": {"big": ["yes", "no", "again"]}}
    found = ran(tmp_path, spec_of(command, resources=LIMIT, parallelism=sizes))
    assert sorted(seen.ending for seen in found.seen) == ["answered", "out_of_memory", "out_of_memory"]
    assert not [
        left for parent in limits.find_parents().values() for left in parent.glob(f"{limits.PREFIX}{os.getpid()}-*")
    ]


def test_an_agent_that_outlives_what_it_started_ends_as_it_does(tmp_path):
    own = f'python3 -c "{EATS}"; echo "child: $?"'
    found = ran(tmp_path, spec_of(own, resources=LIMIT))
    assert (found.only.ending, found.lines[-1], found.case.status) == ("answered", "child: 137", "pass")
    failed = ran(tmp_path, spec_of(f"{own}; exit 3", resources=LIMIT))
    assert failed.only.ending == "crashed"
    assert failed.only.turns[0].detail.startswith("exit code 3")


def test_a_kill_from_elsewhere_is_a_crash(tmp_path):
    found = ran(tmp_path, spec_of("kill -9 $$", resources=LIMIT))
    assert (found.only.ending, found.only.turns[0].detail) == ("crashed", "exit code 137")


def test_who_keeps_within_the_limit_is_left_alone(tmp_path):
    page_cache = "for n in 1 2 3; do head -c 40000000 /dev/zero > /tmp/big; done; echo fine"
    found = ran(tmp_path, spec_of(page_cache, resources=LIMIT))
    assert (found.only.ending, found.text) == ("answered", "fine")


def test_a_check_has_memory_whatever_the_agent_has_left(tmp_path):
    looks = "python3 -c \"held = bytearray(b'x' * 30_000_000)\""
    rules = {"looks": {"description": "d", "check": {"type": "command_exit", "command": looks}}}
    found = ran(tmp_path, spec_of(f"exec {FILLS} big", resources=LIMIT, invariants=rules))
    assert found.only.ending == "out_of_memory"
    assert [verdict.outcome for verdict in found.verdicts] == ["pass"]


@BACKENDS
def test_a_fault_of_memory_is_met_and_named(tmp_path, backend):
    eat = "python3 -c 'import time; time.sleep(0.3); x = bytearray(b\"x\" * 300_000_000)'"
    weather = [{"name": "storm", "world_faults": [{"mode": "memory_limit", "megabytes": 100}]}]
    found = ran(tmp_path, {**spec_of(eat), "chaos_matrix": weather}, backend=backend)
    assert (ending_of(found.only)[0], "100Mi" in ending_of(found.only)[1]) == ("out_of_memory", True)
    assert [met.effect for met in found.only.ledger] == ["met"]


def test_what_holds_the_sandbox_is_in_no_group(tmp_path):
    async def work(sandbox):
        return [Path(f"/proc/{pid}/cgroup").read_text() for pid in sandbox._protected]

    limited = {"resources": Resources(memory=64 << 20), "commands": lambda _: repr}
    for groups in in_sandbox(tmp_path, work, **limited):
        assert limits.PREFIX not in groups


def test_a_command_of_ours_that_uses_too_much_ends_alone(tmp_path):
    async def work(sandbox):
        fills = ["sh", "-c", f"exec {FILLS} /tmp/big"]
        return [await sandbox.run(fills, ENV) for n in range(2)]  # from the first on no memory is left

    for ran_out in in_sandbox(tmp_path, work, resources=Resources(memory=64 << 20)):
        assert ran_out.exit_code == 137 or ran_out.signal == 9
