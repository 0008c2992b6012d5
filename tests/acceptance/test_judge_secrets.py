"""A stored run that is judged anew: what a mask hides is undecided, never passed and never blamed."""

from __future__ import annotations

from pathlib import Path

from files1 import project, tell

SPEC = """
version: 1
id: w
task: {prompt: "a"}
agent: {type: command, command: "python bot.py"}
secrets:
  - {name: PW, source: "env:MYPW"}
invariants:
  ok: {description: t, check: {type: completes}}
  ran: {description: t, gate: true, check: {type: command_exit, command: "cat out.txt"}}
  filed: {description: t, gate: true, check: {type: file_content, path: out.txt, not_contains: "hunter2"}}
"""
AGENT = "import os\nprint('done')\nopen('out.txt', 'w').write(os.environ['PW'])\n"


def test_a_leaked_secret_that_failed_does_not_pass_when_it_is_judged_again(tmp_path: Path) -> None:
    project(tmp_path, SPEC, AGENT)
    assert tell(tmp_path, "run", "--json", MYPW="hunter2hunter2").code == 1
    for by in ((), ("-c", "holdfast.yaml")):
        again = tell(tmp_path, "judge", "1", "--json", *by, MYPW="hunter2hunter2")
        assert again.code == 3
        (case,) = again.json["parts"]["scenario"]["cases"]
        assert case["status"] == "error"
        verdicts = {one["invariant"]: one for one in case["replicas"][0]["verdicts"]}
        assert verdicts["ran"]["outcome"] == "pass"
        assert verdicts["filed"]["outcome"] == "error"
        assert "a secret was masked in what was recorded for this rule" in verdicts["filed"]["reason"]
