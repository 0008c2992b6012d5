"""`custom` in a file without a world: its script reads the spec's folder and the trial's trace; no sandbox is made."""

from __future__ import annotations

import json

import pytest
from cli import MakeProject

AGENT = """
def find_item(name):
    return {"price": "$24.90"}

def answer(question):
    return "It costs " + find_item("kettle")["price"]
"""
SPEC = """
agent: {type: python, endpoint: "agent:answer", tools: ["agent:find_item"]}
golden_prompts: ["What does the kettle cost?"]
contract:
  name: shop
  invariants:
    - {id: looked-up, type: custom, script: check.py, severity: critical}
  chaos_matrix: [{name: calm}]
"""
CHECK = """
import json, pathlib, sys
context = json.load(sys.stdin)
calls = [json.loads(line) for line in pathlib.Path(context["trace_path"]).read_text().splitlines()]
audited = pathlib.Path(context["audit_log_path"]).read_text()
here = sorted(path.name for path in pathlib.Path(context["workspace_path"]).glob("*.py"))
print(json.dumps({
    "passed": any(call["tool"] == "find_item" for call in calls) == WANTED,
    "context": [here, context["services"], audited, context["task"]["prompt"]],
}))
"""


@pytest.mark.parametrize(("wanted", "code"), [(True, 0), (False, 1)])
def test_the_script_judges_the_spec_folder_and_the_trace(project: MakeProject, wanted: bool, code: int) -> None:
    made = project(SPEC, AGENT)
    (made.folder / "check.py").write_text(CHECK.replace("WANTED", str(wanted)))
    result = made.cli("contract", "run", "--json", "--no-report")
    assert result.code == code, result.err
    ((trial,),) = (cell["trials"] for cell in result.json["parts"]["contract"]["cells"])
    assert trial["details"]["context"] == [["agent.py", "check.py"], {}, "", "What does the kettle cost?"]
    assert "sandbox" not in json.dumps(result.json["isolation"])


def test_a_script_that_is_missing_is_an_error_before_the_agent_is_asked(project: MakeProject) -> None:
    result = project(SPEC, AGENT).cli("contract", "run")
    assert result.code == 4
    assert "check.py" in result.err


def test_a_script_in_the_sandbox_still_opens_one(project: MakeProject) -> None:
    made = project(SPEC.replace("script: check.py", "script: check.py, runs_in: sandbox"), AGENT)
    (made.folder / "check.py").write_text("print('{\"passed\": true}')")
    result = made.cli("contract", "run", "--json", "--no-report")
    assert result.code == 0, result.err
    assert result.json["isolation"]
