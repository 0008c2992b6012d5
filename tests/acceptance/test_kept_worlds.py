"""--keep, holdfast shell, holdfast clean: the world of a trial that failed stays for a look, without its secrets."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import yaml
from cli import HOLDFAST

SPEC: dict[str, Any] = {
    "version": 1,
    "id": "kept",
    "task": {"prompt": "go"},
    "agent": {
        "type": "command",
        "command": "echo $TOKEN > copied.txt; printf %s $TOKEN | base64 > coded.txt; mkdir d-$TOKEN; "
        "echo $TOKEN state > ~/.state; "
        ": > d-$TOKEN/$TOKEN; ln -s $TOKEN link; echo made > made-$PARAM_WAY.txt; curl -s $MAIL_URL/x -d hi; echo done",
    },
    "parallelism": {"matrix": {"way": ["right", "wrong"]}},
    "secrets": [{"name": "TOKEN", "from": "static://sesame-sesame", "scope": {"env": True, "file": "keys/token"}}],
    "services": [{"name": "mail", "type": "http_mock", "record": True}, {"name": "db", "image": "postgres:16"}],
    "fixtures": [
        {"type": "sql", "service": "db", "sql": "CREATE TABLE t (id int, who text); INSERT INTO t VALUES (1, 'ada')"}
    ],
    "invariants": {"made": {"description": "it is made", "check": {"type": "file_exists", "path": "made-right.txt"}}},
}


def holdfast(folder: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([HOLDFAST, *words], cwd=folder, input=given, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a run kept the world of its one failed trial."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "spec.yaml").write_text(yaml.safe_dump(SPEC))
    done = holdfast(folder, "run", "-c", "spec.yaml", "--keep")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "kept in .holdfast/kept" in done.stdout
    return folder


def kept(project: Path) -> Path:
    (folder,) = (project / ".holdfast" / "kept").iterdir()
    return folder


def test_only_the_world_of_the_failed_trial_stays(project: Path) -> None:
    folder = kept(project)
    assert (folder / "workspace" / "made-wrong.txt").read_text() == "made\n"
    assert not (folder / "workspace" / "made-right.txt").exists()
    (line,) = holdfast(project, "shell").stdout.splitlines()
    assert line.split()[:3] == [folder.name, "run", "0001"]
    assert " fail" in line


def test_its_home_is_kept_without_secrets_and_opened_again(project: Path) -> None:
    assert (kept(project) / "home/.state").read_text() == "[masked] state\n"
    done = holdfast(project, "shell", kept(project).name, "--", "sh", "-c", 'cat "$HOME/.state"; echo more >> ~/.state')
    assert done.stdout == "[masked] state\n", done.stderr
    assert (kept(project) / "home/.state").read_text() == "[masked] state\n"


def test_what_the_services_held_is_there(project: Path) -> None:
    services = kept(project) / "services"
    (request,) = json.loads((services / "mail.json").read_text())["requests"]
    assert (request["path"], request["body"]) == ("/x", "hi")
    tables = json.loads((services / "db.json").read_text())
    assert tables["public.t"]["rows"] == [[1, "ada"]]
    types = [json.loads(line)["type"] for line in (kept(project) / "audit.jsonl").read_text().splitlines()]
    assert {"command", "http_call", "file_write"} <= set(types)
    assert (kept(project) / "trace.jsonl").read_text().count("http_call") == 1


def test_no_secret_stays(project: Path) -> None:
    for path in kept(project).rglob("*"):
        assert not path.is_file() or b"sesame-sesame" not in path.read_bytes(), path
        assert "sesame" not in str(path)
        assert not path.is_symlink()
    assert (kept(project) / "workspace" / "d-[masked]" / "[masked]").is_file()
    assert (kept(project) / "workspace" / "copied.txt").read_text() == "[masked]\n"
    assert "masked" in (kept(project) / "workspace" / "coded.txt").read_text()
    assert oct(kept(project).stat().st_mode & 0o077) == "0o0"


def test_a_shell_opens_it_in_a_sandbox_and_changes_nothing(project: Path) -> None:
    script = (
        "cat made-wrong.txt; echo ${TOKEN:-none}; echo $PARAM_WAY; ls /kept/services; echo x > made-wrong.txt; exit 7"
    )
    done = holdfast(project, "shell", kept(project).name[:6], given=script)
    seen = ["made", "sesame-sesame", "wrong", "db.dump", "db.json", "mail.json"]
    assert (done.stdout.split(), done.returncode) == (seen, 7), done.stderr
    assert (kept(project) / "workspace" / "made-wrong.txt").read_text() == "made\n"
    one = holdfast(project, "shell", kept(project).name, "ls", "-1")
    assert one.stdout.split() == ["coded.txt", "copied.txt", "d-[masked]", "keys", "made-wrong.txt"]
    outside = holdfast(project, "shell", kept(project).name, "ls", str(project))
    assert outside.returncode != 0


def test_the_shell_is_a_terminal(project: Path) -> None:
    pid, ours = pty.fork()
    if pid == 0:
        os.chdir(project)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it
        os.execv(HOLDFAST, [HOLDFAST, "shell", kept(project).name])
    seen = _until(ours, b"kept $ ")
    os.write(ours, b"test -t 0 && echo it-is-a-$((1))-terminal; sleep 60\n")
    seen += _until(ours, b"it-is-a-1-terminal")
    time.sleep(0.3)
    os.write(ours, b"\x03")  # the sleep is interrupted, and not the shell
    seen += _until(ours, b"kept $ ")
    os.write(ours, b"exit 4\n")
    _until(ours, b"\0")
    os.close(ours)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4, seen


def _until(fd: int, words: bytes) -> bytes:
    """What a terminal shows up to these words, or to its end."""
    seen, until = b"", time.monotonic() + 30
    while words not in seen and time.monotonic() < until:
        if select.select([fd], [], [], 1.0)[0]:
            try:
                piece = os.read(fd, 4096)
            except OSError:
                break
            seen += piece
            if not piece:
                break
    return seen


def test_a_trial_that_was_not_kept_is_refused(project: Path) -> None:
    done = holdfast(project, "shell", "ffffffffffff")
    assert done.returncode == 4
    assert "ffffffffffff  [kept-world-invalid]" in done.stderr
    assert kept(project).name in done.stderr


def test_a_world_that_broke_is_kept_too(tmp_path: Path) -> None:
    broken = {**SPEC, "setup": {"commands": ["echo half > half.txt; exit 3"]}, "parallelism": {"replicas": 1}}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(broken))
    done = holdfast(tmp_path, "run", "-c", "spec.yaml", "--keep", "--no-preflight")
    assert done.returncode == 3
    assert (kept(tmp_path) / "workspace" / "half.txt").read_text() == "half\n"
    assert "sesame" not in (kept(tmp_path) / "kept.json").read_text()


def test_the_preflight_is_not_judged_and_not_kept(tmp_path: Path) -> None:
    spec = {
        **{key: SPEC[key] for key in ("version", "id", "task", "invariants")},
        "agent": {"type": "command", "command": "echo a > made-right.txt"},
        "forbidden": {"file_writes_outside": ["out/"]},
    }
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
    done = holdfast(tmp_path, "run", "-c", "spec.yaml", "--keep")
    assert done.returncode == 1, done.stdout + done.stderr
    assert kept(tmp_path).name in done.stdout


def test_clean_removes_kept_worlds_only_if_asked(project: Path, tmp_path: Path) -> None:
    # In a copy: a worker that steals tests may run others of this file afterwards.
    project = copytree(project, tmp_path / "copy", symlinks=True)
    folder = kept(project)
    holdfast(project, "clean")
    holdfast(project, "clean", "--older-than", "1h")
    assert folder.exists()
    assert holdfast(project, "clean", "--older-than", "soon").returncode == 4
    done = holdfast(project, "clean", "--kept")
    assert f"removed .holdfast/kept/{folder.name}" in done.stdout
    assert not folder.exists()


def test_a_trial_that_did_something_forbidden_is_listed_with_that_rule(tmp_path: Path) -> None:
    spec = {
        "version": 1,
        "id": "left",
        "task": {"prompt": "go"},
        "agent": {"type": "command", "command": "touch elsewhere; echo done"},
        "forbidden": {"file_writes_outside": ["src/"]},
        "invariants": {"answers": {"description": "it answers", "check": {"type": "completes"}}},
    }
    (tmp_path / "holdfast.yaml").write_text(yaml.safe_dump(spec))
    done = holdfast(tmp_path, "run", "--keep")
    (trial,) = (tmp_path / ".holdfast/kept").iterdir()
    assert f"the world of {trial.name};" in done.stdout, done.stdout
    assert "file_writes_outside fail" in holdfast(tmp_path, "shell").stdout
