"""The version of an installed program, read from its package without starting it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.starter.recipe import find_version, read_recipe


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return path


def test_a_program_of_npm_is_known_by_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "lib/node_modules/@openai/codex"
    bin_file = program(package / "bin/codex.js")
    (package / "package.json").write_text(json.dumps({"name": "@openai/codex", "version": "0.1.2"}))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/codex").symlink_to(bin_file)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_version(read_recipe("codex")) == "0.1.2"


def test_a_program_of_pnpm_is_known_behind_its_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "global/5/.pnpm/codex@0.1.2/node_modules/@openai/codex"
    program(package / "bin/codex.js")
    (package / "package.json").write_text(json.dumps({"name": "@openai/codex", "version": "0.1.2"}))
    script = program(tmp_path / "codex")
    script.write_text(f'#!/bin/sh\n  exec node  "$basedir/{(package / "bin/codex.js").relative_to(tmp_path)}" "$@"\n')
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_version(read_recipe("codex")) == "0.1.2"


def test_a_program_of_pipx_is_known_by_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bin_file = program(tmp_path / "venvs/aider/bin/aider")
    (tmp_path / "venvs/aider/lib/python3.12/site-packages/aider_chat-0.9.dist-info").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/aider").symlink_to(bin_file)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_version(read_recipe("aider")) == "0.9"


def test_a_program_without_its_package_is_there_with_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "claude")
    program(tmp_path / "aider")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [find_version(read_recipe(name)) for name in ("claude-code", "aider", "codex")] == ["", "", None]


def test_a_library_is_looked_for_next_to_holdfast() -> None:
    recipe = replace(read_recipe("langgraph"), pip=("pytest[x]>=3",))
    assert find_version(recipe) == pytest.__version__
    assert find_version(replace(recipe, pip=("no-such-library-at-all",))) is None
