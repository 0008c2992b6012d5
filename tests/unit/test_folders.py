"""Where Holdfast keeps things, by option, variable and spec."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from holdfast.demo.demo import GOOD
from holdfast.folders import HOME, format_path, get_local_runs_folder, get_own_folder, get_runs_folder, use_runs_folder
from holdfast.store.run_folders import format_name
from holdfast.store.rundir import RunDir


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/holdfast.yaml").touch()
    (tmp_path / "linked.yaml").symlink_to("specs/holdfast.yaml")
    return tmp_path


SPEC, PIPED = "specs/holdfast.yaml", "/dev/stdin"


@pytest.mark.parametrize(
    ("option", "home", "spec", "runs", "rest"),
    [
        (None, "", None, ".holdfast/runs", ".holdfast"),
        (None, "", PIPED, ".holdfast/runs", ".holdfast"),
        (None, "", str(GOOD.spec), ".holdfast/runs", ".holdfast"),
        (None, "", SPEC, "specs/.holdfast/runs", "specs/.holdfast"),
        (None, "", "linked.yaml", "specs/.holdfast/runs", "specs/.holdfast"),
        (None, "home", None, "home/runs", "home"),
        (None, "home", SPEC, "home/runs", "home"),
        (None, ".", SPEC, "runs", "."),
        ("mine", "", SPEC, "mine", "mine"),
        ("mine", "home", SPEC, "mine", "mine"),
        ("mine/runs", "", None, "mine/runs", "mine/runs"),
        ("home/runs", "home", None, "home/runs", "home"),
        ("x/.holdfast/runs", "", SPEC, "x/.holdfast/runs", "x/.holdfast"),
        (".holdfast", "", SPEC, ".holdfast", ".holdfast"),
        (".", "", SPEC, ".", "."),
    ],
)
def test_the_option_wins_over_the_variable_and_the_variable_over_the_spec(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str | None,
    home: str,
    spec: str | None,
    runs: str,
    rest: str,
) -> None:
    monkeypatch.setenv(HOME, home)
    with nullcontext() if option is None else use_runs_folder(Path(option)):
        found = get_runs_folder(spec), get_own_folder(spec)
        assert [path.resolve() for path in found] == [(project / name).resolve() for name in (runs, rest)]
        alone, part = RunDir(project / runs / "0001"), RunDir(project / runs / "0001/parts/contract")
        assert {one.own_folder.resolve() for one in (alone, part)} == {(project / rest).resolve()}
    assert get_runs_folder() == get_local_runs_folder()


def test_a_run_is_named_by_its_id_only_where_the_next_command_finds_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with use_runs_folder(Path("mine")):  # the next command has no --runs-dir
        assert format_name(project / "mine/0001") == "mine/0001"
    assert format_name(project / ".holdfast/runs/0001") == "0001"
    monkeypatch.setenv(HOME, "home")
    assert format_name(project / "home/runs/0001/parts/contract") == "0001/contract"
    assert format_name(project / ".holdfast/runs/0001") == ".holdfast/runs/0001"
    assert format_path(project.parent / "x") == str(project.parent / "x")
