"""Tools that a framework owns: faults meet their results on the way to the model, though none is declared."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from framework_kit import AGENTS, HOLDFAST
from framework_weather import ANSWER, MODEL, MODEL_NAME, PROMPT, RULES

from golden_words import Golden

AGENT_FILES = [
    "with_langgraph",
    *(pytest.param(f"with_{name}", marks=pytest.mark.long) for name in ("openai_agents", "pydantic_ai")),
]
MATRIX = [
    {"name": "calm"},
    {"name": "broken", "tool_faults": [{"tool": "search", "mode": "error"}]},
    {"name": "lying", "tool_faults": [{"tool": "search", "mode": "wrong_value"}]},
]


def written(folder: Path, agent: str, matrix: list, **more) -> None:
    shutil.copy(AGENTS / f"{agent}.py", folder / f"{agent}.py")
    (folder / "model.yaml").write_text(yaml.safe_dump(dict(MODEL)))
    spec = {
        "version": "1.0",
        "agent": {"type": "python", "endpoint": f"{agent}:answer", "env": {"AGENT_MODEL": MODEL_NAME}, **more},
        "golden_prompts": [PROMPT],
        "models": {MODEL_NAME: {"script": "model.yaml"}},
        "contract": {"name": "C", "invariants": RULES, "isolation": "scenario"},
        "chaos_matrix": matrix,
    }
    (folder / "holdfast.yaml").write_text(yaml.safe_dump(spec))


def run(folder: Path, *args: str) -> tuple[int, str, str]:
    environ = {**os.environ, "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    ended = subprocess.run([HOLDFAST, *args], cwd=folder, env=environ, capture_output=True, text=True, timeout=120)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("agent", AGENT_FILES)
def test_a_framework_s_tool_is_met_in_its_result(tmp_path: Path, agent: str) -> None:
    written(tmp_path, agent, MATRIX)
    code, out, err = run(tmp_path, "contract", "run", "--json", "--no-report")
    assert code == 1, err
    cells = {(c["invariant"], c["scenario"]): c for c in json.loads(out)["parts"]["contract"]["cells"]}
    assert cells["right", "calm"]["trials"][0]["answer"] == ANSWER
    assert cells["right", "broken"]["trials"][0]["answer"] == "The data is unavailable right now."
    assert cells["right", "lying"]["outcome"] == "fail"
    for name in ("broken", "lying"):
        assert cells["completes", name]["outcome"] == "pass"
        met = [fault for fault in cells["completes", name]["trials"][0]["faults"] if fault["effect"] == "met"]
        assert {(fault["plane"], fault["target"]) for fault in met} == {("tool_result", "search")}


def test_the_doctor_says_where(tmp_path: Path, golden: Golden) -> None:
    written(tmp_path, "with_pydantic_ai", MATRIX)
    code, out, err = run(tmp_path, "doctor", "--no-agent", "--json")
    assert code == 0, err
    golden([entry for entry in json.loads(out)["spec"] if entry["code"] == "fault-placed"])


@pytest.mark.parametrize(
    ("mode", "more", "why"),
    [
        ("timeout", {}, "not their time or effect"),
        ("phantom_success", {}, "not their time or effect"),
        ("error", {"isolation": "inline"}, "declares no tools"),
    ],
)
def test_what_a_result_cannot_show_is_refused(tmp_path: Path, mode: str, more: dict, why: str) -> None:
    written(tmp_path, "with_pydantic_ai", [{"name": "x", "tool_faults": [{"tool": "search", "mode": mode}]}], **more)
    code, _, err = run(tmp_path, "validate")
    assert code == 4
    assert why in err
