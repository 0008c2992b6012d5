"""Where the values of secrets come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import UserError
from holdfast.model.world import Secret
from holdfast.secrets.values import resolve_secrets
from refused import refused


def value(
    source: str, root: Path, environ: dict[str, str] | None = None, *, seed: int = 0, commands: bool = True
) -> str:
    return resolve_secrets([Secret("KEY", source)], environ or {}, root, seed, commands=commands)["KEY"]


def test_every_source(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("from a file\n")
    assert value("env", tmp_path, {"KEY": "from env"}) == "from env"
    assert value("env:OTHER", tmp_path, {"OTHER": "another"}) == "another"
    assert value("file:key.txt", tmp_path) == "from a file"
    assert value("command:echo from $WHERE", tmp_path, {"WHERE": "a shell", "PATH": "/usr/bin:/bin"}) == "from a shell"
    assert value("static://made up", tmp_path) == "made up"


def test_a_generated_one_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    assert value("generated", tmp_path, seed=1) == value("generated", tmp_path, seed=1)
    assert value("generated", tmp_path, seed=1) != value("generated", tmp_path, seed=2)


def test_a_strangers_command_is_not_run(tmp_path: Path) -> None:
    with refused("secret-unavailable") as raised:
        value(f"command:touch {tmp_path}/ran", tmp_path, commands=False)
    assert "--allow-commands" in raised.value.hint
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("env", "which is not set"),
        ("file:none.txt", "cannot be read"),
        ("command:exit 3", "exited with 3"),
        ("static://short", "shorter than 6"),
    ],
)
def test_one_without_a_value_is_refused(source: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=why):
        value(source, tmp_path)
