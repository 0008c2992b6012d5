"""A job: which trial is asked first, and whose commands are run."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from holdfast.plan import RunOptions
from holdfast.runner.job import Job, is_trusted
from holdfast.spec import LoadOptions, load

SPEC = {
    "version": 1,
    "id": "x",
    "task": {"prompt": "do it"},
    "agent": {"type": "command", "command": "true"},
    "invariants": {"ends": {"description": "it ends", "check": {"type": "completes"}}},
}
EXTERNAL = {"name": "db", "type": "external", "url": "postgresql://127.0.0.1/app"}


def job(folder: Path, options: RunOptions, **sections: object) -> Job:
    path = folder / "x.yaml"
    path.write_text(yaml.safe_dump({**SPEC, **sections}))
    spec, _ = load(path, environ={}, options=LoadOptions(part="scenario"))
    return Job(spec, options, {})


def test_the_agent_is_asked_once_first(tmp_path: Path) -> None:
    mock = {"name": "mail", "type": "http_mock"}
    first = job(tmp_path, RunOptions(part="scenario"), services=[mock]).preflight_trial
    assert first is not None
    assert first.kind == "control"


@pytest.mark.parametrize(
    "sections",
    [
        {"services": [EXTERNAL]},
        {"network": {"ingress": {"allow": [{"from": "host", "to_port": 3000}]}}},
    ],
    ids=["an external server", "a way in"],
)
def test_not_where_that_would_leave_marks_outside(tmp_path: Path, sections: dict[str, object]) -> None:
    assert job(tmp_path, RunOptions(part="scenario"), **sections).preflight_trial is None


def test_nor_where_the_user_does_not_want_it(tmp_path: Path) -> None:
    assert job(tmp_path, RunOptions(part="scenario", preflight=False)).preflight_trial is None


def test_commands_are_trusted_in_the_project_folder_and_where_the_user_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project/agents").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    (tmp_path / "project/link.yaml").symlink_to(tmp_path / "x.yaml")
    outside = job(tmp_path, RunOptions(part="scenario")).spec
    inside = job(tmp_path / "project/agents", RunOptions(part="scenario")).spec
    assert is_trusted(inside, RunOptions())
    assert not is_trusted(outside, RunOptions())
    assert not is_trusted(replace(outside, path="link.yaml"), RunOptions())
    assert is_trusted(outside, RunOptions(allow_commands=True))
