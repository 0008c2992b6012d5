"""A job: which trial is asked first."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from holdfast.plan import RunOptions
from holdfast.runner.job import Job
from holdfast.spec import load

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
    spec, _ = load(path, environ={}, part="scenario")
    return Job(spec, options, {})


def test_the_agent_is_asked_once_first(tmp_path: Path) -> None:
    mock = {"name": "mail", "type": "http_mock"}
    first = job(tmp_path, RunOptions(part="scenario"), services=[mock]).asked_first
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
    assert job(tmp_path, RunOptions(part="scenario"), **sections).asked_first is None


def test_nor_where_the_user_does_not_want_it(tmp_path: Path) -> None:
    assert job(tmp_path, RunOptions(part="scenario", preflight=False)).asked_first is None
