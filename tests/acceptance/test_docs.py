"""The documentation is true: its specs load, its commands exist and print what it shows, nothing is left out."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import jsonschema_rs
import pytest
import yaml
from docs_pages import PAGES, REPO, Block, all_blocks, blocks, calls_of_holdfast, play

from holdfast import plugins
from holdfast.cli.main import root
from holdfast.faults import profiles
from holdfast.spec import check
from holdfast.spec.rules.fault_entry import FAMILIES
from reference import build_codes_page, build_reference

DOCS = REPO / "docs"
SHOP = next(block for block in blocks(DOCS / "guide.md") if block.file == "shop.py")
AGENT = {"type": "python", "endpoint": "shop:answer", "tools": ["shop:find_item"], "llm": "shop:model"}
TOOLS = ["shop:check_balance", "shop:delete_order", "shop:find_item", "shop:issue_refund", "shop:lookup_order",
         "shop:market_data_api", "shop:send_mail", "shop:send_payment"]  # fmt: skip
"""Those that the rules of the pages name."""
ON_THE_WIRE = {
    "type": "command",
    "command": "python shop.py",
    "mcp_config": {"mcpServers": {"shop": {"command": "shop-server"}}},
}
BOXED = {
    "services": [{"name": "db", "image": "postgres:16"}, {"name": "cache", "image": "redis:7"}],
    "resources": {"disk": "100Mi"},
}
CALM = {"name": "calm"}
BROKEN = {"name": "broken", "tool_faults": [{"tool": "*", "mode": "error"}], "llm_faults": [{"mode": "empty"}]}
ATTACKED = {"name": "attacked", "context_attacks": [{"type": "memory_poisoning"}]}
ANSWERS = {"id": "stock-rule", "type": "completes"}
RESISTS = {"id": "stock-resists", "type": "excludes_pattern", "patterns": ["HOLDFAST-CANARY"]}


def whole(block: Block) -> str:
    """The file that a block is, or that it is a part of."""
    if "spec" in block.words:
        return block.text
    part = yaml.safe_load(block.text)
    rules, matrix, more = [ANSWERS], [CALM, ATTACKED], {}
    if "rule" in block.words:
        rules, matrix = [ANSWERS, *part], [CALM, BROKEN]
    elif "scenario" in block.words:
        attacks = part.get("context_attacks", ())
        actions = [one["action"] for one in attacks if isinstance(one, dict) and "action" in one]
        refuses = [{"id": f"no-{tool}", "type": "tool_not_called", "tool": tool} for tool in actions]
        rules, matrix = [ANSWERS, RESISTS, *refuses], [CALM, {"name": "shown", **part}]
        more = BOXED if "boxed" in block.words else {}
    else:
        assert "section" in block.words, f"{block.name}: say after ```yaml what the block is"
        more = part
    contract = {"name": "The contract", "invariants": rules, "chaos_matrix": matrix}
    agent = ON_THE_WIRE if "wire" in block.words else {**AGENT, "tools": TOOLS} if rules[1:] else AGENT
    stock: dict[str, Any] = {"agent": agent, "golden_prompts": ["How much?"], "contract": contract}
    return yaml.safe_dump({**stock, **more}, sort_keys=False)


SPECS = [block for block in all_blocks("yaml") if "other" not in block.words]


@pytest.mark.parametrize("block", SPECS, ids=lambda block: block.name)
def test_every_yaml_block_loads_without_error_or_warning(block: Block, tmp_path: Path) -> None:
    for file in (SHOP, *blocks(block.page)):
        if file.file is not None and "/" not in file.file:
            (tmp_path / file.file).write_text(file.text)
    path = tmp_path / "shown.yaml"
    path.write_text(whole(block))
    set_ = dict.fromkeys(re.findall(r"\$\{(\w+)", block.text), "a-long-value")
    checked = check(path, environ=set_)
    assert [f"{p.line}: {p.path} {p.message}" for p in checked.problems] == []
    assert checked.spec is not None
    assert bool(checked.spec.unbuilt) == ("reads-only" in block.words)


def test_the_schema_for_editors_takes_every_yaml_block() -> None:
    validator = jsonschema_rs.validator_for(json.loads((DOCS / "holdfast.schema.json").read_text()))
    wrong = {block.name: list(validator.iter_errors(yaml.safe_load(whole(block)))) for block in SPECS}
    assert {name: [error.message for error in errors] for name, errors in wrong.items() if errors} == {}


PLAYED = [page for page in PAGES if any(b.language == "console" and "not-run" not in b.words for b in blocks(page))]


EVERY_TIME = ("README.md", "guide.md", "extending.md", "agents.md", "scenarios.md", "ci.md")
"""Pages whose commands `make test` runs, too: those that a newcomer reads, and that show every kind of run."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.long] * (page.name not in EVERY_TIME), id=page.name) for page in PLAYED],
)
def test_the_commands_of_a_page_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    env = {"PYTHONPATH": str(installed(page, tmp_path))}
    played = play(page, tmp_path, env)
    assert played
    wrong = [f"{p.where}  $ {p.command}\n{p.printed}\nnot there: {p.missing}" for p in played if p.missing is not None]
    assert not wrong, "\n\n".join(wrong)


def installed(page: Path, folder: Path) -> Path:
    """Where the page's own package lies, told to Python as an installer would tell it."""
    place = folder / "src"
    for block in blocks(page):
        if block.file == "pyproject.toml":
            points = tomllib.loads(block.text)["project"]["entry-points"]
            info = place / "shown-0.1.0.dist-info"
            info.mkdir(parents=True)
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shown\nVersion: 0.1.0\n")
            text = "".join(
                f"[{group}]\n" + "".join(f"{name} = {path}\n" for name, path in entries.items())
                for group, entries in points.items()
            )
            (info / "entry_points.txt").write_text(text)
    return place


CALLS = [
    (f"{block.name} {' '.join(call)}", call)
    for block in all_blocks("console")
    for command, _ in block.commands
    for call in calls_of_holdfast(command)
] + [
    (f"{page.name} {span}", call)
    for page in PAGES
    for span in re.findall(r"`(holdfast [^`]+)`", page.read_text())
    for call in calls_of_holdfast(span)
]


@pytest.mark.parametrize("call", [call for _, call in CALLS], ids=[name for name, _ in CALLS])
def test_every_command_and_option_shown_exists(call: list[str]) -> None:
    command: click.Command = root
    words = list(call)
    with click.Context(root) as ctx:
        while isinstance(command, click.Group) and words and not words[0].startswith("-") and words[0] != "COMMAND":
            found = command.get_command(ctx, words.pop(0))
            assert found is not None, f"no such command: {call}"
            command = found
        known = {option for param in command.get_params(ctx) for option in param.opts}
    own = words[: words.index("--")] if "--" in words else words  # what follows is another program's
    given = {word.partition("=")[0] for word in own if re.match(r"--?[a-z]", word)}
    assert given <= known | {"-h", "--help"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        place = (page.parent / file) if file else page
        assert place.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.+)$", place.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}, target


def entry(page: str, section: str, name: str) -> str:
    """The text under the heading `name` of a section."""
    part = (DOCS / page).read_text().partition(f"\n## `{section}`\n")[2].partition("\n## ")[0]
    assert f"\n### `{name}`\n" in part, f"{page} has no entry {name} in {section}"
    return part.partition(f"\n### `{name}`\n")[2].partition("\n### ")[0]


@pytest.mark.parametrize("name", plugins.list_names("checks"))
def test_every_check_has_an_entry_with_an_example(name: str) -> None:
    assert re.search(rf"```yaml (rule|section)\n(.*\n)*?.*type: {name}\b", entry("checks.md", "type", name))


SECTIONS = {family.registry: name for name, family in FAMILIES.items()}


@pytest.mark.parametrize(("family", "section"), SECTIONS.items(), ids=SECTIONS.values())
def test_every_fault_has_a_row_with_its_settings(family: str, section: str) -> None:
    text = (DOCS / "faults.md").read_text().partition(f"\n## `{section}`\n")[2].partition("\n## ")[0]
    table = text.partition("\n| mode | what it does ")[2] or text.partition("\n| type | what it does ")[2]
    rows = {line.split("`")[1]: line for line in table.partition("\n\n")[0].splitlines() if line.startswith("| `")}
    found = dict(plugins.list_plugins(family))
    assert set(rows) == set(found)
    for name, plugin in found.items():
        assert [f.name for f in fields(plugin) if f"`{f.name}`" not in rows[name]] == []


def test_every_profile_is_named() -> None:
    text = (DOCS / "faults.md").read_text()
    assert [name for name in profiles.list_profiles() if f"`{name}`" not in text] == []


def test_the_configuration_page_is_the_generated_one() -> None:
    assert (DOCS / "configuration.md").read_text() == build_reference(), "write it again: make docs"


def test_the_page_of_codes_is_the_generated_one() -> None:
    assert (DOCS / "codes.md").read_text() == build_codes_page(), "write it again: make docs"


def test_the_readme_is_short_and_its_make_targets_exist() -> None:
    readme = (REPO / "README.md").read_text()
    assert len(readme.splitlines()) <= 250
    targets = set(re.findall(r"^([a-z-]+):", (REPO / "Makefile").read_text(), re.MULTILINE))
    shown = set(re.findall(r"(?:`|^\$ )make ([a-z-]+)", readme, re.MULTILINE))
    assert {"demo", "test"} <= shown <= targets


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (REPO / "README.md").read_text()
    assert [page.name for page in PAGES[1:] if f"({page.relative_to(REPO)})" not in readme] == []
