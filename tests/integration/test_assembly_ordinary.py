"""Worlds of a user without rights: the same tests once more."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sandbox_kit import as_ordinary_user

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "some"),
    [
        pytest.param("test_sandbox_disturbed.py", "", marks=pytest.mark.long),
        pytest.param("test_assembly_forbidden.py", "", marks=pytest.mark.long),
        ("test_sandbox_programs.py", "pipx or npm_global or beside or pyenv"),
        ("test_sandbox_home.py", "bubblewrap or disk"),
        ("test_sandbox_nested.py", "namespaces_of_its_own"),
        ("test_world_faults.py", "evidence or through_a_link or full_disk or permission_is or read_only"),
    ],
)
@pytest.mark.root
def test_as_an_ordinary_user(name, some):
    with TemporaryDirectory(dir="/tmp") as folder:  # pytest's own is for root alone
        words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / name), "-k", some)
        done = as_ordinary_user(*words, folder=Path(folder))
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
