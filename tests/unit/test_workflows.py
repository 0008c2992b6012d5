"""What runs for those who join: workflows, pre-commit and forms name what is there, and ask for only what they need."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
MAKE = re.compile(r"\bmake ([a-z-]+)")
MAY_WRITE = {"docs.yml": {"pages", "id-token"}, "release.yml": {"id-token", "attestations"}}


def read(path: Path) -> Any:
    found = yaml.safe_load(path.read_text())
    return {("on" if key is True else key): value for key, value in found.items()}  # `on` is true in YAML 1.1


def jobs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from read(path)["jobs"].items()


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for _, job in jobs(path):
        yield from job.get("steps", [])


def test_there_is_one_for_tests_docs_and_releases() -> None:
    assert [path.name for path in WORKFLOWS] == ["docs.yml", "release.yml", "tests.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_do_no_more_than_it_must(path: Path) -> None:
    found = read(path)
    assert "pull_request_target" not in found["on"]
    assert found["permissions"] == {"contents": "read"}
    for name, job in jobs(path):
        asked = {scope for scope, what in job.get("permissions", {}).items() if what == "write"}
        assert asked <= MAY_WRITE.get(path.name, set()), name
        assert "uses" in job or job["timeout-minutes"] <= 60, name
        assert job.get("environment") or "id-token" not in asked or name == "build", name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_steps_of_a_workflow_name_what_is_there(path: Path) -> None:
    for step in steps(path):
        script = step.get("run", "")
        assert set(MAKE.findall(script)) <= TARGETS, script
        assert "${{" not in script, "what others wrote would become a script: hand it over in env"
        assert "secrets." not in str(step), "no password is needed: PyPI trusts the workflow"
        if "uses" in step:
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@v\d+(\.\d+)*", step["uses"]), f"not pinned: {step['uses']}"
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    for _, job in jobs(path):
        assert not job.get("uses") or (ROOT / job["uses"]).is_file()


def test_tests_run_on_every_python_from_the_oldest_on_and_on_debians_own() -> None:
    ((_, job),) = jobs(ROOT / ".github/workflows/tests.yml")
    images = job["strategy"]["matrix"]["image"]
    minors = sorted(int(found[1]) for image in images if (found := re.match(r"python:3\.(\d+)-", image)))
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert (f">=3.{minors[0]}", minors) == (oldest, [*range(minors[0], minors[-1] + 1)])
    assert minors[-1] >= 14
    assert [image for image in images if image.startswith("debian:")]
    assert "make test" in [step.get("run") for step in job["steps"]]


def test_a_release_is_tested_and_its_files_are_attested() -> None:
    found = dict(jobs(ROOT / ".github/workflows/release.yml"))
    assert set(found["publish"]["needs"]) == {"tests", "build"}
    used = [step.get("uses", "").split("@")[0] for step in found["build"]["steps"]]
    assert "actions/attest-build-provenance" in used
    (publish,) = [step for step in found["publish"]["steps"] if step["uses"].startswith("pypa/")]
    assert publish["with"]["attestations"] is True


def test_pre_commit_runs_what_make_check_runs() -> None:
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert local["repo"] == "local"  # nothing is fetched
    hooks = [hook["entry"].removeprefix(".venv/bin/").removesuffix(" --force-exclude") for hook in local["hooks"]]
    recipe = MAKEFILE.partition("\ncheck:")[2].partition("\n\n")[0].splitlines()[1:]
    checked = [line.strip().removeprefix("$(BIN)/") for line in recipe]
    assert [re.sub(r" \.$| --check \.$", "", line) for line in checked] == hooks


@pytest.mark.parametrize("path", [path for path in FORMS if path.name != "config.yml"], ids=lambda path: path.name)
def test_a_form_asks_for_what_is_needed(path: Path) -> None:
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "labels", "body"} == set(form)
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in fields}) == len(fields)
    assert any(part.get("validations", {}).get("required") for part in fields)
    if path.stem != "idea":
        assert "Remove secrets first" in form["body"][0]["attributes"]["value"]
        assert "holdfast --version" in path.read_text()


def test_make_help_lists_every_target() -> None:
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == TARGETS
    told = set(re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE))
    assert told == TARGETS


def test_what_contributing_tells_to_type_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert set(MAKE.findall(text)) <= TARGETS
    assert {"test", "check", "dev"} <= set(MAKE.findall(text))
    for name in re.findall(r"`((?:src|tests|docs|tools|requirements)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), name
