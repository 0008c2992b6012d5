from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from error_code import has_code
from golden_words import Golden
from holdfast.errors import UsageError, UserError
from holdfast.model.codec import RUN_DIRECTORY
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Recording, RequestChange, Task, Variation
from holdfast.plan import RunOptions, Select
from holdfast.runner.start import apply_part, write_part
from holdfast.store.lines import JsonLines
from holdfast.store.record import read_verdicts
from holdfast.store.rundir import Manifest, RunDir, write_json


def manifest(**changes: object) -> Manifest:
    known = {
        "format": RUN_DIRECTORY, "id": "0001", "version": "0", "started": "",
        "spec_path": "holdfast.yaml", "file": "/holdfast.yaml", "root": "/",
        "spec_digest": "a", "agent_digest": "b", "seed": 0, "options": RunOptions(),
    }  # fmt: skip
    return Manifest(**{**known, **changes})  # type: ignore[arg-type]


def test_a_torn_last_line_is_cut_off_before_the_next_record(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b'{"a":1}\n{"b":')
    lines = JsonLines(file)
    lines.write(b'{"c":3}')
    lines.close()
    assert file.read_bytes() == b'{"a":1}\n{"c":3}\n'


def test_a_file_of_one_torn_line_becomes_empty(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b'{"a":')
    JsonLines(file).close()
    assert file.read_bytes() == b""


def test_every_record_is_on_disk_once_written(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path / "x.jsonl")
    lines.write(b"{}")
    assert (tmp_path / "x.jsonl").read_bytes() == b"{}\n"
    lines.close()


def test_ids_count_up_and_git_ignores_the_folder(tmp_path: Path) -> None:
    runs = tmp_path / ".holdfast" / "runs"
    assert [RunDir.create(runs).id for _ in range(3)] == ["0001", "0002", "0003"]
    assert (tmp_path / ".holdfast" / ".gitignore").read_text() == "*\n"


def test_a_run_is_found_by_id_short_id_or_path(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path)
    write_json(run.path / "run.json", manifest())
    for name in ("0001", "1", str(run.path)):
        assert RunDir.find(tmp_path, name).path.resolve() == run.path.resolve()


def test_an_unknown_run_names_those_there_are(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path)
    write_json(run.path / "run.json", manifest())
    with pytest.raises(UsageError) as told:
        RunDir.find(tmp_path, "0009")
    assert "0001" in told.value.hint


def test_two_processes_cannot_write_one_run(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path)
    run.lock()
    with pytest.raises(UserError, match="another process"):
        RunDir(run.path).lock()
    run.unlock()
    RunDir(run.path).lock()


def test_another_format_is_refused_with_the_way_out(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path)
    for of_later in (manifest(format=99), {"format": 99, "name": "what we do not know yet"}):
        write_json(run.path / "run.json", of_later)
        with pytest.raises(UserError, match=f"99.*{RUN_DIRECTORY}"):
            run.read_manifest()
    write_json(run.path / "run.json", {"format": RUN_DIRECTORY})
    with pytest.raises(UserError, check=has_code("run-damaged")):
        run.read_manifest()


def test_runs_are_for_their_owner_alone(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path)
    lines = JsonLines(run.path / "x.jsonl")
    lines.close()
    assert os.stat(run.path).st_mode & 0o077 == 0
    assert os.stat(run.path / "x.jsonl").st_mode & 0o077 == 0


GIVEN = RunOptions(
    select=Select(("d*",), ("s*",), ("0123",)), replicas=3, seed=7, profile="top14", min_score=40.0, strict=True,
    allow_vacuous=True, max_errors=2, replay=Path("/tmp/calls.jsonl"), part="scenario", backend="process",
    strict_world=True,
)  # fmt: skip


def test_the_options_of_a_run_come_back_whole(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path)
    told = replace(GIVEN, concurrency=4, fail_fast=True, preflight=False, record=Path("r"), keep=True)
    write_json(run.path / "run.json", manifest(options=told))
    assert run.read_manifest() == manifest(options=told)


def stored(folder: Path) -> RunDir:
    folder.mkdir(parents=True)
    write_json(folder / "run.json", manifest())
    return RunDir(folder)


@pytest.mark.parametrize("name", ["latest", "last"])
def test_the_newest_run_has_a_name(name: str, tmp_path: Path) -> None:
    for number in ("0002", "10000", "0009"):
        stored(tmp_path / number)
    (tmp_path / "10001").mkdir()  # begun, and killed before it had a manifest
    assert RunDir.find(tmp_path, name).id == "10000"


def test_the_newest_of_no_run_is_none(tmp_path: Path, golden: Golden) -> None:
    with pytest.raises(UsageError) as told:
        RunDir.find(tmp_path / "runs", "latest")
    golden(told.value.hint)


def test_a_part_of_a_run_is_found_by_id_and_by_path(tmp_path: Path) -> None:
    parent = stored(tmp_path / "0007")
    part = stored(parent.path / "parts" / "contract")
    for name in ("0007/contract", "7/contract", "latest/contract", str(part.path)):
        assert RunDir.find(tmp_path, name).path == part.path
    assert part.id == "0007/contract"
    assert [one.id for one in parent.parts] == ["0007/contract"]
    assert part.parts == ()


def test_an_unknown_part_names_those_there_are(tmp_path: Path) -> None:
    parent = stored(tmp_path / "0007")
    stored(parent.path / "parts" / "contract")
    with pytest.raises(UsageError) as told:
        RunDir.find(tmp_path, "0007/replay")
    assert told.value.hint == "its parts are: 0007/contract"


@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir])
def test_something_else_in_the_place_of_the_manifest_is_reported_and_not_waited_for(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    put(tmp_path / "run.json")
    with pytest.raises(UserError) as refused:
        RunDir(tmp_path).read_manifest()
    assert refused.value.code == "run-damaged"


def test_a_verdict_that_no_trial_can_have_is_not_a_record(tmp_path: Path) -> None:
    (tmp_path / "verdicts-1.jsonl").write_bytes(
        b'{"trial":"a","invariant":"r","outcome":"n/a","score":0.0,"reason":""}\n'
    )
    with pytest.raises(UserError, match=r"verdicts-1.jsonl:1: .*'n/a'", check=has_code("run-damaged")):
        list(read_verdicts(tmp_path / "verdicts-1.jsonl"))


# `part.json`: what a mutation run asks and holds comes back as it was.


TASKS = (
    Task(("one", "two"), "mutation", Variation("noise", "One", "typos", attack=True, canaries=("c",))),
    Task(("x",), "mutation", Variation("m", "x", request=RequestChange("m", headers=(("a", "b\r\n"),)))),
    Task(("y",), "replay", recording=Recording("s1")),
    Task(("z",), "probe"),
)
RULES = (Invariant("a", "contains", {"value": "ü"}, asked_only=("z",)), Invariant("b", "completes", attacks_only=True))
FILE = Spec("spec.yaml", AgentSpec(), tasks=(Task(("golden",)),))


@pytest.mark.parametrize("part", ["mutation", "replay"])
def test_tasks_and_rules_come_back(part: str, tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    write_part(run, replace(FILE, part=part, tasks=TASKS, invariants=RULES))
    found = apply_part(run, FILE)
    assert (found.tasks, found.invariants) == (TASKS, RULES)


@pytest.mark.parametrize("part", ["contract", "scenario", "chaos"])
def test_other_parts_are_what_their_file_says(part: str, tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    write_part(run, replace(FILE, part=part, tasks=TASKS))
    assert list(tmp_path.iterdir()) == []
    assert apply_part(run, FILE) is FILE
