"""What a sandbox shows wherever it lies on the host: below folders that programs write to, and behind links."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sandbox_kit import ENV, in_sandbox

from holdfast.errors import UserError

PLACES = [
    place
    for place in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/srv", "/opt", "/usr/share")
    if os.access(place, os.W_OK)
]
"""Those that whoever runs the tests can write to."""


@pytest.mark.parametrize("place", PLACES)
def test_a_folder_is_seen_at_its_own_path(tmp_path, place):
    (tmp_path / "seen").mkdir()
    (tmp_path / "seen" / "file").write_text("here")

    async def work(sandbox):
        told = []
        for throwaway in (False, True):
            script = f"cat {inside}/file && ! touch {inside}/new 2>/dev/null"
            ran = await sandbox.run(["sh", "-c", script], ENV, throwaway=throwaway)
            told.append((ran.exit_code, ran.stdout))
        return told

    with TemporaryDirectory(dir=place) as inside:  # in /usr it must be there
        assert in_sandbox(tmp_path, work, visible={inside: tmp_path / "seen"}) == [(0, b"here")] * 2


@pytest.mark.parametrize("place", [place for place in PLACES if place in ("/tmp", "/srv")])
def test_a_python_behind_links_is_found_and_finds_itself(tmp_path, monkeypatch, place):
    with TemporaryDirectory(dir=place) as folder:
        Path(folder).chmod(0o755)
        first, second, env = (Path(folder) / name for name in ("first", "second", "env"))
        first.symlink_to(second)
        second.symlink_to(Path(sys.executable).resolve())
        subprocess.run([first, "-m", "venv", "--without-pip", env], check=True)
        python = str(env / "bin" / "python")
        monkeypatch.setattr(sys, "executable", python)
        monkeypatch.setattr(sys, "prefix", str(env))

        async def work(sandbox):
            ran = await sandbox.run([python, "-c", "import sys, json; print(sys.prefix, sys.base_prefix)"], ENV)
            return ran.stdout.decode().split(), ran.stderr

        assert in_sandbox(tmp_path, work) == ([str(env), sys.base_prefix], b"")


def test_what_lies_in_the_workspace_is_refused_and_not_hidden(tmp_path):
    with pytest.raises(UserError) as refused:
        in_sandbox(tmp_path, None, visible={"/workspace/env": tmp_path})
    assert refused.value.code == "workspace-hides"
