"""Where a program of the user's is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.world.program_search import ProgramSearch, make_search


def made(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def search(tmp_path: Path, *folders: Path, version: str = "", **environ: str) -> ProgramSearch:
    root = tmp_path / "spec"
    root.mkdir(exist_ok=True)
    return ProgramSearch(
        ":".join(map(str, folders)), root, tmp_path, tmp_path / "own", {"PYENV_VERSION": version, **environ}
    )


def test_the_first_executable_file_on_path(tmp_path: Path) -> None:
    (tmp_path / "a/bot").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/bot").write_text("not executable")
    wanted = made(tmp_path / "c/bot")
    made(tmp_path / "d/bot")
    assert search(tmp_path, *[tmp_path / name for name in "abcd"]).find("bot") == wanted
    assert search(tmp_path, tmp_path / "a").find("bot") is None
    assert ProgramSearch("c::.", tmp_path, tmp_path, tmp_path).find("bot") is None  # only what is absolute


@pytest.mark.parametrize(
    ("version", "beside", "wanted"), [("", "", "1"), ("", "2", "2"), ("3:1", "2", "3"), ("9", "", "")]
)
def test_a_shim_leads_to_the_version_that_it_would_choose(
    tmp_path: Path, version: str, beside: str, wanted: str
) -> None:
    made(tmp_path / "pyenv/shims/bot")
    found = {name: made(tmp_path / f"pyenv/versions/{name}/bin/bot") for name in "123"}
    (tmp_path / "pyenv/version").write_text("1\n")
    here = search(tmp_path, tmp_path / "pyenv/shims", version=version)
    if beside:
        (tmp_path / ".python-version").write_text(beside)
    assert here.find("bot") == found.get(wanted)


def test_a_plain_python_is_ours_unless_an_environment_is_active(tmp_path: Path) -> None:
    ours, theirs = made(tmp_path / "own/python3"), made(tmp_path / "env/bin/python3")
    here = search(tmp_path, tmp_path / "env/bin")
    assert here.find("python3") == ours
    (tmp_path / "env/pyvenv.cfg").write_text("home = /usr/bin\n")
    assert here.find("python3") == theirs
    assert here.find("python3.99") is None


def test_the_spec_may_set_the_path(tmp_path: Path) -> None:
    assert make_search({"PATH": "/a", "HOME": "/h"}, tmp_path, tmp_path, None).path == "/a"
    assert make_search({"PATH": "/a"}, tmp_path, tmp_path, "/b").path == "/b"


def test_a_program_that_is_only_next_to_holdfast_is_found_there(tmp_path: Path) -> None:
    ours = made(tmp_path / "own/pytest")
    assert search(tmp_path, tmp_path / "bin").find("pytest") == ours
    theirs = made(tmp_path / "bin/pytest")
    assert search(tmp_path, tmp_path / "bin").find("pytest") == theirs


@pytest.mark.parametrize(
    ("variables", "path", "found"),
    [
        ({"VIRTUAL_ENV": "/v"}, "/v/bin:/usr/bin", "/v"),
        ({"CONDA_PREFIX": "/c"}, "/usr/bin:/c/bin", "/c"),
        ({"VIRTUAL_ENV": "/v", "CONDA_PREFIX": "/c"}, "/v/bin:/c/bin", "/v"),
        ({"VIRTUAL_ENV": "/v"}, "/usr/bin", None),
        ({"VIRTUAL_ENV": "/own"}, "/own/bin", None),
        ({"VIRTUAL_ENV": ""}, "bin:/usr/bin", None),
        ({}, "/v/bin", None),
    ],
)
def test_the_environment_that_the_user_has_activated(
    tmp_path: Path, variables: dict[str, str], path: str, found: str | None
) -> None:
    assert make_search({"PATH": path, **variables}, tmp_path, Path("/own/bin"), None).find_activated() == found
