"""Where a program of the user's is found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.model.spec import AgentSpec
from holdfast.world import program_search
from holdfast.world.program_search import ProgramSearch, ProgramStamps, find_manager, make_search


def made(path: Path, text: str = "#!/bin/sh\n") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
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


# Programs that change during a run.


def test_a_program_that_is_another_in_the_end_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    (folder / "bot").symlink_to("one")
    search = ProgramSearch(f"{folder}:/usr/bin:/bin", tmp_path, tmp_path, tmp_path / "own")
    stamps = ProgramStamps(AgentSpec(type="command", command="env A=1 bot && sh ./run.sh; cat < x"), search)
    assert stamps.list_changed() == ()
    (folder / "bot").unlink()
    (folder / "bot").symlink_to("two")
    assert stamps.list_changed() == (str(folder / "bot"),)
    (folder / "bot").unlink()
    assert stamps.list_changed() == (str(folder / "bot"),)


# Which manager a shim belongs to, and what that says.


@pytest.mark.parametrize(
    ("target", "name", "manager"),
    [
        ("mise", "bot", "mise"),
        ("volta-shim", "bot", "volta"),
        ("rustup", "cargo", "rustup"),
        ("mise", "mise", None),
        ("other", "bot", None),
    ],
)
def test_a_link_to_a_manager_is_its_shim(tmp_path: Path, target: str, name: str, manager: str | None) -> None:
    made(tmp_path / "opt" / target)
    shim = tmp_path / "shims" / name
    shim.parent.mkdir()
    shim.symlink_to(f"../opt/{target}")
    found = find_manager(str(shim), "")
    assert (found and os.path.realpath(found)) == (manager and str(tmp_path / "opt" / manager))


def test_a_hard_link_to_rustup_is_its_shim(tmp_path: Path) -> None:
    rustup = made(tmp_path / "bin/rustup")
    os.link(rustup, tmp_path / "bin/cargo")
    assert find_manager(str(tmp_path / "bin/cargo"), "") == rustup
    assert find_manager(rustup, "") is None
    assert find_manager(made(tmp_path / "bin/cargo-own"), "") is None


def test_a_script_of_asdf_names_it(tmp_path: Path) -> None:
    asdf = made(tmp_path / "bin/asdf")
    bare = made(tmp_path / "shims/bot", '#!/usr/bin/env bash\n# asdf-plugin: nodejs 1\nexec asdf exec "bot" "$@"\n')
    whole = made(tmp_path / "shims/old", f'#!/usr/bin/env bash\nexec {asdf} exec "old" "$@" # asdf_allow\n')
    assert find_manager(bare, str(tmp_path / "bin")) == find_manager(whole, "/nowhere") == asdf
    assert find_manager(bare, "/nowhere") is None
    assert find_manager(made(tmp_path / "shims/sh", "#!/bin/sh\necho asdf exec\n"), "") is None


@pytest.mark.parametrize(
    ("says", "found"),
    [
        ("echo {real}", True),
        ("echo {real}; exit 1", False),  # it knows no version
        ("echo bot", False),
        ("echo {real}.gone", False),
        ("[ $WHICH ] && echo {real}", True),  # it heeds the user's variables
        ("exit 0", False),
        ("yes {real}", False),  # endless: nothing waits for it, nor keeps it
        ("echo {real}; exec >&-; sleep 100", False),  # it never ends
    ],
)
def test_what_its_manager_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, found: bool) -> None:
    monkeypatch.setattr(program_search, "_ANSWER_S", 2.0 if found else 0.5)
    real = made(tmp_path / "installs/bot/1/bin/bot")
    made(tmp_path / "opt/mise", f"#!/bin/sh\n{says.format(real=real)}\n")
    (tmp_path / "shims").mkdir()
    (tmp_path / "shims/bot").symlink_to(tmp_path / "opt/mise")
    later = made(tmp_path / "later/bot")
    path = f"{tmp_path}/shims:{tmp_path}/later"
    search = ProgramSearch(path, tmp_path, tmp_path, tmp_path / "own", {"WHICH": "1", "PATH": f"{path}:/usr/bin:/bin"})
    assert search.find("bot") == (real if found else later)


@pytest.mark.parametrize("kind", ["link", "script"])
def test_a_manager_that_only_the_spec_names_is_not_run(tmp_path: Path, kind: str) -> None:
    """It would run beside the sandbox, with all of the user's variables."""
    for name in ("mise", "asdf"):
        made(tmp_path / f"theirs/{name}", f"#!/bin/sh\ntouch {tmp_path}/ran\necho /bin/true\n")
    shim = tmp_path / "theirs/bot"
    if kind == "link":
        shim.symlink_to("mise")
    else:
        made(shim, f'#!/bin/sh\nexec {tmp_path}/theirs/asdf exec "bot" "$@"\n')
    search = ProgramSearch(f"{tmp_path}/theirs:/bin", tmp_path, tmp_path, tmp_path / "own", {"PATH": "/usr/bin:/bin"})
    assert search.find("bot") == str(shim)
    assert not (tmp_path / "ran").exists()
