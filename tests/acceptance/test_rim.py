"""The rim: pipes that close, disks that are full, numbers that are none."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))
SPEC = """
agent: {type: python, endpoint: "agent:ask"}
golden_prompts: [hi]
contract: {name: x, invariants: [{id: r, type: contains, value: hi, description: d}]}
chaos_matrix: [{name: calm}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "holdfast.yaml").write_text(SPEC)
    (tmp_path / "agent.py").write_text("def ask(prompt):\n    return prompt\n")
    return tmp_path


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "H": HOLDFAST}
    return subprocess.run(["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, timeout=60)


def test_a_reader_that_leaves_does_not_change_the_verdict(folder: Path) -> None:
    done = shell(folder, "$H contract run | true; echo ${PIPESTATUS[0]}")
    assert done.stdout.split() == ["0"]
    assert done.stderr == ""


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_do_not_change_the_verdict(folder: Path, closed: str) -> None:
    assert shell(folder, f"$H contract run {closed}").returncode == 0


def test_a_report_that_cannot_be_written_to_stdout_is_never_a_success(folder: Path) -> None:
    done = shell(folder, "$H contract run --json > /dev/full")
    assert done.returncode == 3
    assert done.stderr.startswith("error: ")
    assert "No space left" in done.stderr


def test_a_folder_that_cannot_be_made_is_named(folder: Path) -> None:
    (folder / ".holdfast").write_text("a file")
    done = shell(folder, "$H contract run")
    assert done.returncode == 3
    assert ".holdfast" in done.stderr
    assert "bug" not in done.stderr


INLINE = SPEC.replace('"agent:ask"', '"agent:ask", isolation: inline')


def test_an_inline_agent_that_exits_is_never_a_success(folder: Path) -> None:
    (folder / "holdfast.yaml").write_text(INLINE)
    (folder / "agent.py").write_text("import os\ndef ask(prompt):\n    os._exit(0)\n")
    done = shell(folder, "$H contract run --json")
    assert done.returncode == 3
    assert "ended Holdfast's own process" in done.stderr


def test_an_inline_agent_may_end_a_process_it_forked(folder: Path) -> None:
    (folder / "holdfast.yaml").write_text(INLINE)
    fork = "    if os.fork() == 0:\n        os._exit(7)\n"
    code = f"import os\ndef ask(prompt):\n{fork}    return str(os.wait()[1] >> 8) + ' hi'\n"
    (folder / "agent.py").write_text(code)
    done = shell(folder, "$H contract run --json")
    assert done.returncode == 0
    assert '"answer":"7 hi"' in done.stdout.replace('": "', '":"')


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_inline_agent_that_blocks_is_interrupted_at_once(folder: Path, number: int) -> None:
    (folder / "holdfast.yaml").write_text(INLINE)
    (folder / "agent.py").write_text("import time\ndef ask(prompt):\n    open('asked', 'w')\n    time.sleep(100)\n")
    process = subprocess.Popen(
        [HOLDFAST, "contract", "run"],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (folder / "asked").exists():
        time.sleep(0.02)
    time.sleep(0.1)
    process.send_signal(number)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "holdfast contract run --resume 0001" in out


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ("def ask():\n    return 'hi'\n", "cannot be called with the prompt alone: it takes ()"),
        ("class Odd: pass\ndef ask(prompt):\n    return Odd()\n", "returned an object of type Odd, which has no text"),
    ],
)
def test_wiring_is_not_held_against_the_agent(folder: Path, agent: str, told: str) -> None:
    (folder / "agent.py").write_text(agent)
    done = shell(folder, "$H contract run")
    assert done.returncode == 4
    assert told in done.stderr


def test_a_librarys_own_kind_of_text_is_text(folder: Path) -> None:
    (folder / "agent.py").write_text("class Text(str): pass\ndef ask(prompt):\n    return {'output': Text('hi')}\n")
    assert shell(folder, "$H contract run").returncode == 0


IDLE = """
agent: {type: python, endpoint: "agent:ask", tools: ["agent:tool"]}
golden_prompts: [hi]
contract: {name: x, invariants: [{id: r, type: contains, value: hi, when: no_chaos, description: d}]}
chaos_matrix: [{name: calm}, {name: down, tool_faults: [{tool: tool, mode: error}]}]
"""


def test_a_chaos_scenario_that_no_rule_is_judged_in_is_vacuous_and_warned_of(folder: Path) -> None:
    (folder / "holdfast.yaml").write_text(IDLE)
    (folder / "agent.py").write_text("def tool():\n    return 1\ndef ask(prompt):\n    return prompt\n")
    done = shell(folder, "$H contract run")
    assert done.returncode == 5
    assert "holdfast.yaml:5: chaos_matrix " in done.stderr
    assert shell(folder, "$H contract run --allow-vacuous").returncode == 0


def test_the_luck_of_a_call_does_not_hang_on_the_order_of_a_set(folder: Path) -> None:
    spec = IDLE.replace("when: no_chaos, ", "").replace("mode: error", "mode: error, probability: 0.5")
    (folder / "holdfast.yaml").write_text(spec)
    code = (
        "class Bag:\n    def __init__(self, n): self.kept = {str(i) for i in range(n)}\n"
        "    def __repr__(self): return repr(self.kept)\n"
        "def tool(bag):\n    return 'ok'\n"
        "def ask(prompt):\n    seen = ''\n    for n in range(3, 11):\n        try:\n"
        "            tool(Bag(n)); seen += '0'\n"
        "        except RuntimeError:\n            seen += '1'\n    return prompt + seen\n"
    )
    (folder / "agent.py").write_text(code)
    runs = [shell(folder, "$H contract run --scenario down --json").stdout for _ in range(3)]
    answers = {json.loads(run)["parts"]["contract"]["cells"][0]["trials"][0]["answer"] for run in runs}
    assert len(answers) == 1
    assert "1" in next(iter(answers))
