"""Every recipe can be read, its files are a valid spec, and what is told of it fits them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from golden_words import Golden
from holdfast.cli.init import build_recipe_files, format_recipes
from holdfast.errors import UsageError
from holdfast.processes.startable import get_install_command
from holdfast.spec import LoadOptions, check
from holdfast.starter.recipe import list_names, read_files, read_recipe

NAMES = [
    "agno",
    "aider",
    "claude-code",
    "codex",
    "crewai",
    "gemini-cli",
    "google-adk",
    "goose",
    "gptme",
    "langgraph",
    "llm",
    "mcp-server",
    "mini-swe-agent",
    "open-interpreter",
    "openai-agents",
    "opencode",
    "pydantic-ai",
    "shell-gpt",
    "smolagents",
    "strands",
]
KEY = {"ANTHROPIC_API_KEY": "not-a-real-key", "GOOGLE_API_KEY": "not-a-real-key", "OPENAI_API_KEY": "not-a-real-key"}
DOCS = (Path(__file__).parents[3] / "docs" / "published-agents.md").read_text()


def placed(folder: Path, files: dict[str, bytes]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text)
    return folder / "holdfast.yaml"


def test_the_recipes_are_those_of_the_list() -> None:
    assert list_names() == NAMES
    assert [line.split()[0] for line in format_recipes().splitlines()[1:]] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_a_valid_spec_without_a_warning(name: str, tmp_path: Path) -> None:
    checked = check(placed(tmp_path, read_files(name)), environ={}, options=LoadOptions(part="scenario"))
    assert [str(problem) for problem in checked.problems] == []
    assert checked.spec is not None


def test_what_was_found_is_reported_every_scenario_and_calm_passed() -> None:
    for name in NAMES:
        recipe, spec = read_recipe(name), yaml.safe_load(read_files(name)["holdfast.yaml"])
        assert list(recipe.found) == [scenario["name"] for scenario in spec["chaos_matrix"]], name
        assert recipe.found["calm"] == "pass", name
        assert set(recipe.found.values()) <= {"pass", "fail"}, name
        assert len(recipe.found) >= 4, name


def test_a_recipe_is_installed_from_one_registry_and_has_its_line_in_the_docs() -> None:
    for name in NAMES:
        recipe = read_recipe(name)
        assert bool(recipe.npm) != bool(recipe.pip), name
        assert f"| `{name}` | {recipe.title} {recipe.version} | `{recipe.install}` |" in DOCS, name
        if recipe.program:
            assert get_install_command(recipe.program) == recipe.install, name


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mcp-server"])
def test_a_real_model_takes_the_place_of_the_script(name: str, tmp_path: Path) -> None:
    model = {"anthropic": "claude-haiku-4-5", "google": "gemini-2.5-flash", "openai": "gpt-4o"}
    speaks = read_recipe(name).speaks
    files = build_recipe_files(name, f"{speaks}/{model[speaks]}")
    assert "model.yaml" not in files
    assert yaml.safe_load(files["holdfast.yaml"])["models"]["*"]["provider"] == speaks
    checked = check(placed(tmp_path, files), environ=KEY, options=LoadOptions(part="scenario"))
    assert [str(problem) for problem in checked.problems] == []


@pytest.mark.parametrize(
    ("name", "model", "code"),
    [
        ("codex", "anthropic/claude-haiku-4-5", "option-inapplicable"),
        ("codex", "gpt-4o", "argument-invalid"),
        ("codex", "openai/", "argument-invalid"),
        ("codex", "acme/large", "argument-invalid"),
        ("mcp-server", "openai/gpt-4o", "option-inapplicable"),
    ],
)
def test_a_model_that_cannot_answer_is_refused(name: str, model: str, code: str) -> None:
    with pytest.raises(UsageError) as refused:
        build_recipe_files(name, model)
    assert refused.value.code == code


def test_an_unknown_name_is_reported_with_the_near_miss_and_all_names(golden: Golden) -> None:
    with pytest.raises(UsageError) as refused:
        read_recipe("claude")
    golden(refused.value.hint)


def test_agents_of_frameworks_are_written_with_the_same_tools() -> None:
    tools = []
    for name in NAMES:
        if code := read_files(name).get("agent.py"):
            text = code.decode().replace("@tool\n", "")
            tools.append(text[text.index("def price") : text.index('return "order A17"')])
    assert len(tools) == 8
    assert len(set(tools)) == 1
