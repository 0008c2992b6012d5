"""pytest with a spec in it, in a process of its own: collected, selected, repeated, spread, reported."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.processes

AGENT = """
def find_item(name):
    return "$24.90"


def answer(question):
    try:
        return f"It costs {find_item('kettle')}."
    except Exception:
        return "I guess $25."
"""
SPEC = """agent: {type: python, endpoint: "shop:answer", tools: [shop:find_item], isolation: inline}
golden_prompts: ["What does it cost?"]
contract:
  name: Shop
  invariants:
    - {id: ends, type: completes}
    - {id: honest, type: contains, value: cannot see, when: tool_faults_active}
  chaos_matrix:
    - name: calm
    - {name: down, tool_faults: [{tool: find_item, mode: error}]}
    - {name: late, tool_faults: [{tool: find_item, mode: error, after_calls: 9}]}
"""
ALL = ["ends[calm]", "ends[down]", "honest[down]", "ends[late]", "honest[late]"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "holdfast.yaml").write_text(SPEC)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    return tmp_path


def run_pytest(project: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:langsmith_plugin", "-p", "no:hypothesispytest", *words]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def outcomes(told: str) -> dict[str, str]:
    """The word of each item in a report of `-rA`."""
    found = re.findall(r"^(PASSED|FAILED|ERROR) holdfast\.yaml::(\S+\])", told, re.MULTILINE)
    return {name: word for word, name in found}


def trials(project: Path) -> list[tuple[str, str]]:
    """Rule and scenario of every trial that was run, whichever run it was in."""
    lines = [line for file in project.glob(".holdfast/runs/*/trials.jsonl") for line in file.read_text().splitlines()]
    return sorted((one["invariant"], one["scenario"]) for one in map(json.loads, lines) if one["kind"] == "contract")


def runs(project: Path) -> int:
    return len(list(project.glob(".holdfast/runs/*")))


def test_each_cell_is_an_item_with_its_reason(project: Path) -> None:
    code, told = run_pytest(project, "-rA", "--junitxml=junit.xml")
    assert code == 1
    assert outcomes(told) == {
        "ends[calm]": "PASSED",
        "ends[down]": "PASSED",
        "honest[down]": "FAILED",
        "ends[late]": "FAILED",
        "honest[late]": "FAILED",
    }
    block = re.split(r"^_+ \S+ _+$", told.partition("_ honest[down] _")[2].lstrip("_"), maxsplit=1, flags=re.MULTILINE)[
        0
    ]
    assert "fail: 'cannot see' " in block
    assert "honest · down            holdfast.yaml:7" in block
    for label in (
        "asked      What",
        "answered   I guess $25.",
        "because",
        "fault      tool find_item, call 1: error",
        "reproduce",
    ):
        assert label in block
    assert "\nunproven: " in told
    assert runs(project) == 1
    suite = ElementTree.parse(project / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
        "5",
        "3",
        "0",
        "0",
    )
    words = [prop.get("value") for prop in suite.iter("property") if prop.get("name") == "holdfast_outcome"]
    assert words == ["pass", "pass", "fail", "unproven", "fail"]


def test_only_what_is_selected_is_run_and_only_what_failed_again(project: Path) -> None:
    assert run_pytest(project, "-k", "honest and not late")[0] == 1
    assert trials(project) == [("honest", "down")]
    _, told = run_pytest(project, "--lf", "-rA")
    assert outcomes(told) == {"honest[down]": "FAILED"}
    assert trials(project) == [("honest", "down")] * 2
    _, told = run_pytest(project, "holdfast.yaml::ends[calm]", "-rA")
    assert outcomes(told) == {"ends[calm]": "PASSED"}


def test_the_first_failure_ends_the_run_too(project: Path) -> None:
    code, told = run_pytest(project, "-x", "-rA")
    assert (code, outcomes(told)) == (1, {"ends[calm]": "PASSED", "ends[down]": "PASSED", "honest[down]": "FAILED"})
    assert trials(project) == [("ends", "calm"), ("ends", "down"), ("honest", "down")]


def test_workers_run_the_trials_of_their_own_items_and_come_to_the_same(project: Path) -> None:
    _, alone = run_pytest(project, "-rA")
    once = trials(project)
    code, spread = run_pytest(project, "-rA", "-n", "2", "--dist", "load")
    assert code == 1
    assert outcomes(spread) == outcomes(alone)
    assert trials(project) == sorted([*once, *once]), "each trial is run by one worker, once"


def test_what_is_wrong_with_a_file_is_a_collection_error_with_its_line(project: Path) -> None:
    (project / "bad.holdfast.yaml").write_text(SPEC.replace("type: completes", "type: complets"))
    code, told = run_pytest(project)
    assert code == 2
    assert "ERROR collecting bad.holdfast.yaml" in told
    assert "bad.holdfast.yaml:6:24  contract.invariants[0].type  unknown type 'complets'" in told
    assert "did you mean completes?" in told
    assert "Traceback" not in told
    assert ".py:" not in told


def test_a_file_that_pytest_runs_nothing_of_is_a_warning_and_the_others_are_run(project: Path) -> None:
    head = SPEC.splitlines()[0]
    other = "golden_prompts: [x]\nmutations: {count: 1, types: [noise]}\ninvariants: [{type: completes}]\n"
    (project / "other.holdfast.yaml").write_text(f"{head}\n{other}")
    (project / "pytest.ini").write_text("[pytest]\n")
    code, told = run_pytest(project, "-rA", "-k", "ends and calm")
    assert (code, outcomes(told)) == (0, {"ends[calm]": "PASSED"})
    assert "PytestCollectionWarning: " in told
    assert ": holdfast ci other.holdfast.yaml" in told
    assert "1 passed, 4 deselected, 1 warning" in told.splitlines()[-1]


def test_our_error_is_an_error_and_not_a_failure(project: Path) -> None:
    (project / "holdfast.yaml").write_text(SPEC.replace("shop:answer", "shop:anser"))
    code, told = run_pytest(project, "-rA", "-k", "calm or honest")
    assert (code, set(outcomes(told).values())) == (1, {"ERROR"})
    assert "error: holdfast.yaml:1: 'shop:ans" in told
    assert "3 errors" in told.splitlines()[-1]


def test_without_a_spec_nothing_of_holdfast_is_loaded(tmp_path: Path) -> None:
    code = "import sys\n\n\ndef test_it():\n    assert not [x for x in sys.modules if x.startswith('holdfast.')]\n"
    (tmp_path / "test_nothing.py").write_text(code)
    assert run_pytest(tmp_path)[0] == 0


def test_it_can_be_left_out_and_told_a_seed_and_how_often(project: Path) -> None:
    assert run_pytest(project, "--no-holdfast")[0] == 5
    assert runs(project) == 0
    _, told = run_pytest(project, "-rA", "-k", "ends and calm", "--holdfast-seed=9", "--holdfast-replicas=2")
    assert outcomes(told) == {"ends[calm]": "PASSED"}
    assert trials(project) == [("ends", "calm")] * 2
    assert json.loads((project / ".holdfast/runs/0001/run.json").read_text())["seed"] == 9
