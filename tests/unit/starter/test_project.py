"""A project is known by the packages that its files name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.starter.project import find_recipes


@pytest.mark.parametrize(
    ("file", "text", "names"),
    [
        ("requirements.txt", "LangGraph[all]>=1 ; python_version > '3'\n# crewai\n-r agno.txt\n", ["langgraph"]),
        ("requirements-dev.txt", "pydantic_ai.slim==2\n", ["pydantic-ai"]),
        ("pyproject.toml", '[project]\ndependencies = ["openai-agents~=0.2", "rich"]', ["openai-agents"]),
        ("pyproject.toml", '[project.optional-dependencies]\nx = ["agno"]\n', ["agno"]),
        ("pyproject.toml", '[dependency-groups]\ndev = ["aider-chat", {include-group = "x"}]\n', ["aider"]),
        ("pyproject.toml", '[tool.poetry.group.dev.dependencies]\ncrewai = "^1"\n', ["crewai"]),
        ("package.json", json.dumps({"devDependencies": {"@openai/codex": "*"}}), ["codex"]),
        ("package.json", json.dumps({"dependencies": {"left-pad": "*"}}), []),
    ],
)
def test_a_dependency_names_its_recipe(file: str, text: str, names: list[str], tmp_path: Path) -> None:
    (tmp_path / file).write_text(text)
    assert find_recipes(tmp_path) == names


@pytest.mark.parametrize("text", ["{", "[1]", '{"dependencies": 3}', "\x00", "dependencies = ["])
def test_a_file_that_cannot_be_read_names_none(text: str, tmp_path: Path) -> None:
    for name in ("package.json", "pyproject.toml"):
        (tmp_path / name).write_text(text)
    assert find_recipes(tmp_path) == []


def test_an_empty_folder_fits_none(tmp_path: Path) -> None:
    assert find_recipes(tmp_path) == []
