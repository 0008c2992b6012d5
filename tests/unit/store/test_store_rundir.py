import os
from pathlib import Path

import pytest

from holdfast.errors import UsageError, UserError
from holdfast.store.lines import JsonLines
from holdfast.store.rundir import FORMAT, Manifest, RunDir, read_lines, write_json


def manifest(**changes: object) -> Manifest:
    known = {
        "format": FORMAT, "id": "0001", "version": "0", "started": "", "spec_path": "holdfast.yaml", "root": "/",
        "spec_digest": "a", "agent_digest": "b", "seed": 0,
    }  # fmt: skip
    return Manifest(**{**known, **changes})  # type: ignore[arg-type]


def test_a_torn_last_line_is_dropped_when_read(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b'{"a":1}\n{"b":2}\n{"c":')
    assert list(read_lines(file)) == [b'{"a":1}\n', b'{"b":2}\n']


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
    write_json(run.path / "run.json", manifest(format=99))
    with pytest.raises(UserError, match="format 99"):
        run.manifest()


def test_runs_are_for_their_owner_alone(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path)
    lines = JsonLines(run.path / "x.jsonl")
    lines.close()
    assert os.stat(run.path).st_mode & 0o077 == 0
    assert os.stat(run.path / "x.jsonl").st_mode & 0o077 == 0
