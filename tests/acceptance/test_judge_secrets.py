"""A stored run that is judged anew: what a mask hides is undecided, never passed and never blamed."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli import MakeProject, contract, python, rule, rundir, unseal
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
        assert verdicts["filed"]["code"] == "masked"


KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz1234567890"
SAYS_KEY = f"def search(query):\n    return query\n\n\ndef ask(prompt):\n    return 'it is {KEY}'\n"


def leaking(**settings: str) -> dict[str, object]:
    rules = [rule("leak", "excludes_pattern", patterns=[KEY], severity="critical"), rule("ok", "completes")]
    return contract(rules, agent=python(env={"TOK": KEY}), **settings)


def test_a_rule_is_never_compared_with_the_digest_of_a_secret(project: MakeProject) -> None:
    made = project(leaking(), SAYS_KEY)
    assert made.run().code == 1
    assert made.cli("judge", "1").code != 0
    made.write(made.read("holdfast.yaml") + "# edited\n")
    assert made.cli("judge", "1").code != 0


@pytest.mark.parametrize("gone", [False, True])
def test_a_copy_whose_rules_lack_their_secrets_is_refused(project: MakeProject, gone: bool) -> None:
    made = project(leaking(), SAYS_KEY)
    made.run()
    unseal(made)
    copy = rundir(made) / "spec.yaml"
    copy.write_text(made.read("holdfast.yaml").replace(KEY, "masked-0123456789abcdef"))
    made.write(made.read("holdfast.yaml") + "# edited\n", "moved.yaml" if gone else "holdfast.yaml")
    if gone:
        (made.folder / "holdfast.yaml").unlink()
    refused = made.cli("judge", "1")
    assert refused.code == 4
    assert "(leak)" in refused.err
    assert "[run-unusable]" in refused.err
    assert "-c FILE" in refused.err
    assert made.cli("judge", "1", "-c", "moved.yaml" if gone else "holdfast.yaml").code != 0
    assert not (rundir(made) / "verdicts-3.jsonl").exists()
