"""What travels to a cluster, what stays, and calls to Ray that never return."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import UserError
from holdfast.plan import RunOptions
from holdfast.runner.job import Job
from holdfast.runner.on_cluster import _list_excluded, refuse_outside
from holdfast.spec import load

SPEC = """
agent: {type: command, command: cat}
golden_prompts: [one]
setup: {files: [{path: a.txt, source: SOURCE}]}
secrets: [{name: API_TOKEN, source: "file:keys/token"}]
contract:
  name: c
  invariants: [{id: answers, type: completes}]
  chaos_matrix: [{name: calm}]
"""


def job(folder: Path, source: str = "a.txt", **options: bool) -> Job:
    for name in ("a.txt", "keys/token"):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text("secret-value")
    (folder / "holdfast.yaml").write_text(SPEC.replace("SOURCE", source))
    spec, _ = load(folder / "holdfast.yaml", environ={})
    return Job(spec, RunOptions(on="ray", **options), {})  # type: ignore[arg-type]


def test_a_file_out_of_the_folder_is_refused_and_one_in_it_is_not(tmp_path: Path) -> None:
    (tmp_path / "shared.txt").write_text("x")
    refuse_outside(job(tmp_path / "in").spec, tmp_path / "in")
    outside = job(tmp_path / "out", "../shared.txt").spec
    with pytest.raises(UserError) as raised:
        refuse_outside(outside, tmp_path / "out")
    assert raised.value.code == "cluster-file-missing"


def test_secrets_in_files_travel_only_where_that_is_asked(tmp_path: Path) -> None:
    stays = _list_excluded(job(tmp_path))
    assert {"/keys/token", ".env", ".env.*", "/.git"} <= set(stays)
    sent = _list_excluded(job(tmp_path, send_secrets=True))
    assert "/.git" in sent
    assert not {"/keys/token", ".env"} & set(sent)
