"""Behaviour 1: a file without world keys runs its agent without a sandbox, and every report says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from files1 import SPEC, http_agent, project, tell

NOTE = "no sandbox"


@pytest.mark.parametrize("suffix", ["html", "json", "xml", "md"])
def test_every_report_says_that_there_was_no_sandbox(tmp_path: Path, suffix: str) -> None:
    project(tmp_path, SPEC)
    told = tell(tmp_path, "contract", "run", "-o", f"r.{suffix}")
    assert told.code == 0
    assert NOTE in told.out
    assert NOTE in (tmp_path / f"r.{suffix}").read_text()
    assert NOTE in (tmp_path / ".holdfast/runs/0001/report.html").read_text()


def test_a_report_made_later_says_it_too(tmp_path: Path) -> None:
    project(tmp_path, SPEC)
    tell(tmp_path, "contract", "run", "--no-report")
    for suffix in ("html", "json", "xml", "md"):
        assert tell(tmp_path, "report", "0001", "-o", f"later.{suffix}").code == 0
        assert NOTE in (tmp_path / f"later.{suffix}").read_text()


def test_without_a_sandbox_the_network_is_as_it_is(tmp_path: Path) -> None:
    with http_agent(lambda r: "source") as server:
        agent = f"from urllib.request import urlopen\ndef answer(p): return urlopen('{server.url}/x').read().decode()"
        project(tmp_path, SPEC, agent)
        assert tell(tmp_path, "contract", "run").code == 0


WORLD = {
    "base": 'base: "python:3.12"', "setup": "setup: {commands: [ls]}",
    "services": "services: [{name: s, type: http_mock}]",
    "fixtures": "fixtures: [{type: files, files: [{path: a, content: b}]}]", "secrets": "secrets: [TOKEN]",
    "network": "network: {egress: {default: deny}}", "resources": "resources: {memory: 2Gi}",
    "determinism.clock": 'determinism: {clock: "2026-01-01T00:00:00Z"}', "audit": "audit: {commands: true}",
    "forbidden": "forbidden: {http_except: []}",
}  # fmt: skip


PEEK = """
import os
def answer(prompt):
    return "source " + ("outside" if os.path.exists({here!r}) else "inside")
"""


@pytest.mark.parametrize("key", WORLD)
def test_a_world_key_is_never_run_without_its_world(tmp_path: Path, key: str) -> None:
    project(tmp_path, SPEC + WORLD[key] + "\n", PEEK.format(here=str(tmp_path / "holdfast.yaml")))
    told = tell(tmp_path, "contract", "run", "--json", TOKEN="long-enough")
    assert told.code == 0, told.out + told.err
    assert "inside" in told.json["parts"]["contract"]["cells"][0]["trials"][0]["answer"]
    assert not any(NOTE in note for note in told.json["notes"])
    assert {"network", "host files"} <= {one["feature"] for one in told.json["isolation"] if one["enforced"]}


def test_sandbox_true_opens_one_and_is_not_ignored(tmp_path: Path) -> None:
    here = str(tmp_path / "holdfast.yaml")
    project(tmp_path, SPEC.replace("type: python", "type: python, sandbox: true"), PEEK.format(here=here))
    told = tell(tmp_path, "contract", "run", "--json")
    assert told.code == 0, told.out + told.err
    assert "fresh bubblewrap sandbox" in told.json["kept_apart"]
    assert "inside" in told.json["parts"]["contract"]["cells"][0]["trials"][0]["answer"]
