"""behaviour.md 2: latency, timeouts and late answers."""

from __future__ import annotations

import time

from cli import MakeProject, contract, rule, wait_until

NO_TOOLS = {"type": "python", "endpoint": "agent:ask", "timeout": 1000}
STUBBORN = """
import os, signal, subprocess, time

def ask(prompt):
    signal.signal(signal.SIGTERM, lambda *_: open("termed", "w").write("x"))
    child = subprocess.Popen(["sleep", "60"])
    open("pids", "w").write(f"{os.getpid()} {child.pid}")
    while True:
        time.sleep(1)
"""


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# "Latency is the agent's own: invocation to answer."
def test_2_latency_is_the_agents_own(project: MakeProject) -> None:
    agent = "import time\ndef ask(prompt):\n    time.sleep(0.25)\n    return 'done'\n"
    rules = [rule("enough", "latency", max_ms=1000), rule("tight", "latency", max_ms=200)]
    result = project(contract(rules, agent={**NO_TOOLS, "timeout": 30000}), agent).run()
    assert result.outcomes == {("enough", "calm"): "pass", ("tight", "calm"): "fail"}
    assert all(250 <= trial["latency_ms"] < 900 for trial in result.trials)


# "Timeout: SIGTERM to the group, 2 s, SIGKILL"
def test_2_timeout_is_sigterm_then_sigkill_and_nothing_is_left(project: MakeProject) -> None:
    made = project(contract([rule("done", "completes"), rule("quick", "latency", max_ms=500)],
                            agent=NO_TOOLS, isolation="scenario"), STUBBORN)  # fmt: skip
    started = time.monotonic()
    result = made.run("--no-preflight")
    took = time.monotonic() - started
    assert set(result.outcomes.values()) == {"fail"}
    assert made.read("termed") == "x"
    assert 3.0 <= took < 9.0
    for pid in map(int, made.read("pids").split()):
        wait_until(lambda pid=pid: not alive(pid), 5)  # type: ignore[misc]
    assert result.cells["quick", "calm"]["trials"][0]["latency_ms"] == 1000
