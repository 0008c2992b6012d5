"""The commit is read from git's files, and is what git itself says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from holdfast.store.git_commit import GitCommit, find_commit, get_repository_path, is_dirty

AS = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    plain = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder), "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run(["git", *AS, *words], cwd=folder, check=True, capture_output=True, env=plain)
    return done.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "trunk")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_a_branch(repository: Path) -> None:
    below = repository / "a" / "b"
    below.mkdir(parents=True)
    assert find_commit(below) == GitCommit(git(repository, "rev-parse", "HEAD"), "trunk")


def test_a_packed_branch_and_a_loose_one_before_it(repository: Path) -> None:
    git(repository, "pack-refs", "--all")
    first = git(repository, "rev-parse", "HEAD")
    assert find_commit(repository).commit == first
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    assert find_commit(repository).commit == git(repository, "rev-parse", "HEAD") != first


def test_no_branch(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    assert find_commit(repository) == GitCommit(git(repository, "rev-parse", "HEAD"))


def test_another_worktree(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "side/one", str(tmp_path / "side"))
    git(tmp_path / "side", "commit", "-q", "--allow-empty", "-m", "aside")
    assert find_commit(tmp_path / "side") == GitCommit(git(tmp_path / "side", "rev-parse", "HEAD"), "side/one")
    assert find_commit(repository).branch == "trunk"


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert find_commit(tmp_path) == GitCommit()


@pytest.mark.parametrize(
    "head",
    ["", "ref: refs/../../secret", "ref: refs/heads/loop", "ref: /etc/passwd", "what is this", "\xff\xfe"],
)
def test_what_is_not_a_repository_gives_nothing(head: str, tmp_path: Path) -> None:
    refs = tmp_path / ".git" / "refs" / "heads"
    refs.mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_bytes(head.encode("latin-1"))
    (refs / "loop").write_text("ref: refs/heads/loop")
    (tmp_path / "secret").write_text("0" * 40)
    assert find_commit(tmp_path) == GitCommit()


def test_a_folder_that_may_not_be_read_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")
    assert find_commit(tmp_path) == GitCommit()


def test_a_pipe_in_the_place_of_head_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert find_commit(tmp_path) == GitCommit()


def test_a_file_is_named_from_the_top_of_its_repository(repository: Path, tmp_path: Path) -> None:
    assert get_repository_path(repository / "a" / "b.yaml") == "a/b.yaml"
    assert get_repository_path(tmp_path / "b.yaml") == ""


def test_a_tree_is_dirty_with_a_tracked_file_changed_staged_or_removed(repository: Path) -> None:
    file = repository / "agent.py"
    file.write_text("1\n")
    git(repository, "add", "agent.py")
    assert is_dirty(repository, ["agent.py"])
    git(repository, "commit", "-q", "-m", "agent")
    assert not is_dirty(repository, ["agent.py"])
    os.utime(file, (1, 1))
    assert not is_dirty(repository, ["agent.py"]), "only its time differs"
    file.write_text("2\n")
    assert is_dirty(repository, [])
    file.unlink()
    assert is_dirty(repository, [])


def test_a_tree_is_dirty_with_a_file_of_the_run_that_was_never_added(repository: Path) -> None:
    (repository / ".gitignore").write_text("secret.py\n")
    git(repository, "add", ".gitignore")
    git(repository, "commit", "-q", "-m", "ignore")
    for name in ("agent.py", "secret.py", "report.xml"):
        (repository / name).write_text("1\n")
    assert [is_dirty(repository, [name]) for name in ("agent.py", "secret.py", "gone.py")] == [True, True, False]
    assert not is_dirty(repository, []), "a report that nobody added changes nothing"


def test_where_git_cannot_say_nothing_is_claimed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "agent.py").write_text("1\n")
    monkeypatch.setenv("PATH", str(repository))
    assert not is_dirty(repository, ["agent.py"])
    monkeypatch.undo()
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert is_dirty(repository, ["agent.py"]), "another repository is not asked"
