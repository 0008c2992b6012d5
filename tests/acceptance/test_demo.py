"""`holdfast demo`, as a person runs it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.demo.demo import (
    CARELESS,
    CONVICTED,
    FILES,
    GOOD,
    SCORED,
    VERSIONS,
    find_mail_surprise,
    find_overall_surprise,
    find_surprise,
)
from holdfast.model.run import Overall, PartResult
from holdfast.model.score import Cell

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    here = tmp_path_factory.mktemp("demo")
    return here, _run([HOLDFAST, "demo"], here)


def _run(command: list[str], here: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=60)


def test_demo_holds_the_good_agent_and_convicts_the_careless_one(shown) -> None:
    _, done = shown
    assert (done.returncode, done.stderr) == (0, "")
    good, careless = done.stdout.partition("\n3. ")[0].split("2. The careless agent")
    assert "resilience 100.00" in good
    assert re.search(r"^PASS ", good, re.MULTILINE)
    assert "✘" not in good
    assert "resilience 60.00" in careless
    assert re.search(r"^FAIL  2 critical cells failed", careless, re.MULTILINE)
    assert set(re.findall(r"^✘ (\S+) · (\S+)", careless, re.MULTILINE)) == CONVICTED


def test_demo_shows_a_mail_sent_twice_by_the_careless_agent_alone(shown) -> None:
    mails = shown[1].stdout.partition("\n3. ")[2].partition("\n4. ")[0]
    good, careless = mails.split("The careless agent")
    assert re.search(r"^PASS  every case passed", good, re.MULTILINE)
    assert re.search(r"request_count of .* is 2, not 1 ", " ".join(careless.split()))
    assert re.search(r"fault +http http://mail/mails, call 1: lost_reply", careless)
    assert re.search(r"^FAIL  1 of 2 cases failed", careless, re.MULTILINE)


def test_demo_ends_with_the_overall_score_of_both_agents(shown) -> None:
    here, done = shown
    rows = [line.split() for line in done.stdout.partition("\n4. ")[2].splitlines() if "report.html" in line]
    assert [(row[0], row[5], row[6]) for row in rows] == [("good", "100.00", "PASS"), ("careless", "46.67", "FAIL")]
    for row in rows:
        stored = json.loads((here / row[8]).with_name("overall.json").read_text())
        assert f"{stored['score']:.2f}" == row[5]


def test_demo_says_what_was_seen_and_what_to_do_next(shown) -> None:
    last = [line for line in shown[1].stdout.splitlines() if not line.startswith("`holdfast` is")]
    seen, next_step = last[-2:]
    assert "careless" in seen
    assert "holdfast init" in next_step


def test_demo_writes_the_reports_it_names(shown) -> None:
    here, done = shown
    named = re.findall(r"(\S+report\.html)", done.stdout)
    assert named == [f".holdfast/runs/000{n}/report.html" for n in (1, 2, 4, 5, 6)]
    for path in named:
        assert (here / path).read_text().lstrip().lower().startswith("<!doctype html")


def test_every_reproduce_command_of_the_demo_works_when_pasted(shown) -> None:
    here, done = shown
    commands = [shlex.split(line) for line in re.findall(r"reproduce +(.+)", done.stdout)]
    assert len(commands) == len(CONVICTED) + 1  # and the mail
    for command in commands:
        again = _run([HOLDFAST, *command[1:]], here)
        assert again.returncode == 1, again.stderr
        assert "1 critical cell failed" in again.stdout


def test_the_two_specs_differ_in_the_agent_alone() -> None:
    for named in ("spec", "mail_spec"):
        good, careless = (getattr(version, named).read_text() for version in VERSIONS)
        assert good != careless
        like = good.replace("The good", "The careless").replace(":good", ":careless")
        assert like.replace("mail_agent.py good", "mail_agent.py careless") == careless


def test_the_demo_runs_from_a_copy_in_a_folder_with_spaces(tmp_path: Path) -> None:
    shutil.copytree(FILES, tmp_path / "my finance")
    done = _run([HOLDFAST, "contract", "run", "-c", "my finance/careless.yaml"], tmp_path)
    command = shlex.split(re.findall(r"reproduce +(.+)", done.stdout)[0])
    assert command[4] == "my finance/careless.yaml"
    assert _run([HOLDFAST, *command[1:]], tmp_path).returncode == 1


def test_demo_refuses_arguments(tmp_path: Path) -> None:
    assert _run([HOLDFAST, "demo", "more"], tmp_path).returncode == 4


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        ({}, ""),
        ({("always-cite-source", "no-chaos"): "fail"}, "always-cite-source in no-chaos should have passed"),
        ({("always-cite-source", "llm-degraded"): "pass"}, "always-cite-source in llm-degraded should have failed"),
        ({("always-cite-source", "llm-degraded"): "unproven"}, "always-cite-source in llm-degraded was not decided"),
    ],
)
def test_anything_else_than_the_two_convictions_is_a_surprise(outcomes, told: str) -> None:
    expected = dict.fromkeys(CONVICTED, "fail") | {("always-cite-source", "no-chaos"): "pass"} | outcomes
    cells = [Cell(rule, scenario, "critical", 3.0, outcome) for (rule, scenario), outcome in expected.items()]
    assert find_surprise(VERSIONS[1], cells) == (f"the careless agent: {told}" if told else "")


def test_a_mail_that_was_not_sent_twice_is_a_surprise_too() -> None:
    cells = [Cell("one_mail", "reply-lost", "critical", 3.0, "pass")]
    assert find_mail_surprise(GOOD, cells) == ""
    assert "one_mail in reply-lost " in find_mail_surprise(CARELESS, cells)


@pytest.mark.parametrize(
    ("version", "code", "told"),
    [
        (GOOD, 0, ""),
        (GOOD, 1, "the good agent in ci: contract should have passed"),
        (CARELESS, 1, ""),
        (CARELESS, 3, "the careless agent in ci: contract should have failed"),
    ],
)
def test_a_part_that_ends_otherwise_is_a_surprise(version, code: int, told: str) -> None:
    usual = 1 if version is CARELESS else 0
    parts = tuple(PartResult(part, exit_code=code if part == "contract" else usual) for part in SCORED)
    assert find_overall_surprise(version, Overall("0001", None, False, code, parts)) == told


def test_a_part_that_did_not_run_is_a_surprise() -> None:
    parts = tuple(PartResult(part, skipped="no" if part == "replay" else "") for part in SCORED)
    found = Overall("0001", 100.0, True, 0, parts)
    assert ": replay " in find_overall_surprise(GOOD, found)
