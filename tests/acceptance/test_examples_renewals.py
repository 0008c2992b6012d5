"""examples/renewals: the same rules on the state that is left convict the careless agent and acquit the careful one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli import HOLDFAST, Result

from holdfast.model.world import Secret
from holdfast.secrets.values import resolve_secrets

EXAMPLE = Path(__file__).parents[2] / "examples" / "renewals"
STORMS = ["killed-mid-transaction", "db-reset", "mail-reply-lost", "mail-rate-limited"]


@pytest.fixture
def mails(tmp_path: Path) -> Path:
    """A copy of the example, as a user would have it."""
    return shutil.copytree(EXAMPLE, tmp_path / "renewals", ignore=shutil.ignore_patterns(".*", "__pycache__"))


def run(folder: Path, spec: str, *options: str) -> tuple[Result, list[str]]:
    """The run as JSON, and the lines that it prints."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [HOLDFAST, "run", "-c", spec, "-o", "run.json", *options]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, timeout=300)
    written = (folder / "run.json").read_text() if (folder / "run.json").exists() else ""
    return Result(done.returncode, written, done.stderr.decode()), done.stdout.decode().splitlines()


def cases(result: Result) -> dict[str, dict[str, Any]]:
    return {case["scenario"]: case for case in result.json["parts"]["scenario"]["cases"]}


def shown(spec: str) -> list[str]:
    """What the README shows of a run."""
    _, _, rest = (EXAMPLE / "README.md").read_text().partition(f"$ holdfast run -c {spec}\n")
    lines = rest.partition("```")[0].partition("\n$ ")[0].replace("runs/0002", "runs/0001").splitlines()
    return [line for line in lines if "PostgreSQL" not in line and "sandbox" not in line]


def test_the_two_specs_differ_in_the_agent_alone() -> None:
    careful, careless = ((EXAMPLE / name).read_text() for name in ("careful.yaml", "careless.yaml"))
    assert careful.replace("careful", "careless") == careless


def test_the_careful_agent_holds_in_every_scenario(mails: Path) -> None:
    result, printed = run(mails, "careful.yaml")
    assert result.code == 0, result.out + result.err
    assert {name: (case["status"], case["composite"]) for name, case in cases(result).items()} == dict.fromkeys(
        ["calm", *STORMS], ("pass", 1.0)
    )
    assert result.json["parts"]["contract"]["vacuous"] == []
    assert [line for line in shown("careful.yaml") if line not in "\n".join(printed)] == []


def test_the_careless_agent_is_convicted_under_every_fault_by_what_it_left(mails: Path) -> None:
    result, printed = run(mails, "careless.yaml")
    assert result.code == 1, result.out + result.err
    found = cases(result)
    assert {name: case["status"] for name, case in found.items()} == {"calm": "pass", **dict.fromkeys(STORMS, "fail")}
    for name in STORMS:
        (replica,) = found[name]["replicas"]
        assert [v["outcome"] for v in replica["verdicts"] if v["invariant"] == "one_mail"] == ["fail"]
        assert [fault["effect"] for fault in replica["faults"]] == ["met"]
    assert [line for line in shown("careless.yaml") if line not in "\n".join(printed)] == []


def test_a_failure_is_reproduced_with_the_same_faults_and_evidence(mails: Path) -> None:
    first = cases(run(mails, "careless.yaml", "--scenario", "db-reset")[0])["db-reset"]["replicas"][0]
    _, _, _, spec, *options = first["reproducer"]["command"].split()
    again, _ = run(mails, spec, *options)
    assert again.code == 1
    (second,) = cases(again)["db-reset"]["replicas"]
    assert (second["verdicts"], second["faults"]) == (first["verdicts"], first["faults"])


def test_a_stored_run_is_judged_again_without_the_world(mails: Path) -> None:
    run(mails, "careless.yaml", "--scenario", "db-reset", "--scenario", "calm")
    stricter = (mails / "careless.yaml").read_text().replace("equals: 1}", "equals: 7}")
    (mails / "stricter.yaml").write_text(stricter)
    command = [HOLDFAST, "judge", "0001", "-c", "stricter.yaml", "--json"]
    done = subprocess.run(command, cwd=mails, capture_output=True, timeout=60)
    found = cases(Result(done.returncode, done.stdout.decode(), done.stderr.decode()))
    assert {name: case["status"] for name, case in found.items()} == {"calm": "fail", "db-reset": "fail"}
    reason = found["calm"]["replicas"][0]["verdicts"][0]["reason"]
    assert "is 1, not 7" in reason


def test_nothing_of_the_database_password_is_stored(mails: Path) -> None:
    secret = Secret("DB_PASSWORD", "generated")
    password = resolve_secrets((secret,), {}, mails, 0, commands=False)["DB_PASSWORD"]
    agent = mails / "careful.py"
    agent.write_text(agent.read_text() + 'print(os.environ["DATABASE_URL"])\nos.system("echo $DATABASE_URL > url")\n')
    result, printed = run(mails, "careful.yaml", "--scenario", "calm", "-o", "run.xml", "-o", "run.md")
    (replica,) = cases(result)["calm"]["replicas"]
    assert "[masked]" in replica["turns"][0]["text"]
    stored = [file for file in mails.rglob("*") if file.is_file()]
    assert any(file.parent.name == "audit" for file in stored)
    assert password not in "\n".join(printed)
    assert not [file for file in stored if password.encode() in file.read_bytes()]
