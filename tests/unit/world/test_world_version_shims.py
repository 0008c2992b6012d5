"""Which manager a shim belongs to, and what that says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.world import program_search
from holdfast.world.program_search import ProgramSearch, find_manager


def made(path: Path, text: str = "#!/bin/sh\n") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("target", "name", "manager"),
    [("mise", "bot", "mise"), ("volta-shim", "bot", "volta"), ("mise", "mise", None), ("other", "bot", None)],
)
def test_a_link_to_a_manager_is_its_shim(tmp_path: Path, target: str, name: str, manager: str | None) -> None:
    made(tmp_path / "opt" / target)
    shim = tmp_path / "shims" / name
    shim.parent.mkdir()
    shim.symlink_to(f"../opt/{target}")
    found = find_manager(str(shim), "")
    assert (found and os.path.realpath(found)) == (manager and str(tmp_path / "opt" / manager))


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
    monkeypatch.setattr(program_search, "_ASKED_S", 2.0 if found else 0.5)
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
