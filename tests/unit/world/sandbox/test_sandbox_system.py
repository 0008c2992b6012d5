"""What of the machine a sandbox is shown: only what is there, and whatever its links lead to."""

import sys
import zipfile

import pytest

from holdfast.execute import boxed_worlds
from holdfast.world.sandbox import system
from holdfast.world.sandbox.system import select_mounts


@pytest.fixture
def python(tmp_path):
    """A folder as of a Python, with a package in it."""
    (tmp_path / "python" / "lib").mkdir(parents=True)
    return tmp_path / "python"


def test_what_is_not_there_is_not_shown(python, tmp_path):
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    (tmp_path / "endless").symlink_to(tmp_path / "endless")
    names = ["local/lib/python3.11/dist-packages", "dangling", "dangling/lib", "endless", "endless/lib"]
    assert select_mounts([str(tmp_path / name) for name in names]) == {}
    assert select_mounts([str(python), str(tmp_path / "python.zip")]) == {str(python): python}


def test_a_file_is_shown_as_well_as_a_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "python311.zip", "w"):
        pass
    assert select_mounts([str(tmp_path / "python311.zip")]) == {
        str(tmp_path / "python311.zip"): tmp_path / "python311.zip"
    }
    assert select_mounts([str(tmp_path / "python311.zip" / "inner")]) == {}


def test_what_lies_in_another_is_seen_there(python, tmp_path):
    beside = tmp_path / "python-more"
    beside.mkdir()
    given = [f"{python}/lib", f"{beside}/", f"{python}/../python", str(python)]
    assert select_mounts(given) == {str(python): python, str(beside): beside}
    assert select_mounts(given, without=(str(python),)) == {str(beside): beside}
    assert select_mounts(["/"]) == {}


def test_a_link_is_shown_at_every_path_on_its_way(python, tmp_path):
    (tmp_path / "newest").symlink_to("python")
    (tmp_path / "usual").symlink_to(tmp_path / "newest")
    real = python / "lib"
    assert select_mounts([str(tmp_path / "usual" / "lib")]) == {
        str(tmp_path / "usual" / "lib"): real,
        str(tmp_path / "newest" / "lib"): real,
        str(real): real,
    }


def test_a_link_out_of_a_folder_that_is_shown_leads_somewhere_inside(python, tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    (python / "packages").symlink_to(away)
    assert select_mounts([str(python), str(python / "packages")]) == {str(python): python, str(away): away}
    assert select_mounts([str(python / "packages")], without=(str(python),)) == {str(away): away}


def test_a_python_that_names_folders_that_nobody_made_is_shown_without_them(monkeypatch, tmp_path):
    usual = boxed_worlds.list_interpreter_paths()
    monkeypatch.setattr(
        boxed_worlds.python_site, "getsitepackages", lambda: [str(tmp_path / "dist-packages"), "/usr/lib/x"]
    )
    assert boxed_worlds.list_interpreter_paths().keys() <= usual.keys()
    (tmp_path / "dist-packages").mkdir()
    assert str(tmp_path / "dist-packages") in boxed_worlds.list_interpreter_paths()


def test_the_folders_of_an_interpreter_that_are_gone_are_not_shown(monkeypatch, tmp_path):
    for name in ("prefix", "base_prefix", "exec_prefix", "base_exec_prefix"):
        monkeypatch.setattr(sys, name, str(tmp_path / name))
    (tmp_path / "base_prefix").mkdir()
    assert system.list_interpreters() == {str(tmp_path / "base_prefix"): tmp_path / "base_prefix"}


def test_the_links_to_the_interpreter_are_followed_one_by_one(monkeypatch, python, tmp_path):
    (python / "python3").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to("../newest/python3")
    (tmp_path / "newest").symlink_to(python)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python3"))
    assert system.list_interpreter_links() == {
        str(tmp_path / "bin" / "python3"): "../newest/python3",
        str(tmp_path / "newest"): str(python),
    }
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    assert system.list_interpreter_links() == {}


def test_a_folder_of_the_system_that_is_a_link_is_not_taken_as_seen(monkeypatch, python, tmp_path):
    (tmp_path / "opt").symlink_to(python)
    monkeypatch.setattr(system, "_TOP", (str(tmp_path / "opt"), "/usr"))
    assert not system.is_in_system(str(tmp_path / "opt" / "lib"))
    assert system.is_in_system("/usr/lib")
    assert system.is_in_system("/bin/sh")
    assert not system.is_in_system("/usrlocal")
