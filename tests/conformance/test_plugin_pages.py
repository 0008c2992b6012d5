"""Every fault and check has a page that is whole, and whose example reads without a word of complaint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.spec import check
from holdfast.spec.catalogue.plugin_page import RULES, SECTIONS, PluginPage, build_page, find_pages, iter_pages

PAGES = [*iter_pages("fault"), *iter_pages("check")]
TOOLS = ("search", "send_mail", "issue_refund", "lookup_order", "delete_order")
FUNCTIONS = {
    "type": "python",
    "endpoint": "shop:answer",
    "tools": [f"shop:{tool}" for tool in TOOLS],
    "llm": "shop:ask",
}
SERVER = {"mcpServers": {"shop": {"command": "shop-server"}}}
PROGRAM = {"type": "command", "command": "python shop.py", "mcp_config": SERVER}
WORLD = {
    "services": [
        {"name": "db", "image": "postgres:16"},
        {"name": "mail", "type": "http_mock", "record": True, "routes": [{"path": "/", "response": {"status": 200}}]},
    ],
    "resources": {"disk": "100Mi"},
}
AGENT = """
def answer(question): return ask(question)
def ask(question): return question
""" + "".join(f"def {tool}(name): return name\n" for tool in TOOLS)


def whole(section: str) -> dict[str, Any]:
    """The examples of a section as parts of one file in which they can act."""
    parts = {shown.name: yaml.safe_load(shown.example) for shown in PAGES if shown.section == section}
    ignores = {"id": "ignores-attacks", "type": "excludes_pattern", "patterns": ["HOLDFAST-CANARY", "eve@example"]}
    rules: list[dict[str, Any]] = [{"id": "answers", "type": "completes"}, ignores]
    matrix: list[dict[str, Any]] = [{"name": "calm"}]
    if section == RULES:
        rules += [rule for part in parts.values() for rule in part]
        faults = {"tool_faults": [{"tool": "search", "mode": "error", "times": 1}]}
        matrix.append({"name": "attacked", "context_attacks": [{"type": "indirect_injection"}], **faults})
    else:
        matrix += [{"name": name, **part} for name, part in parts.items()]
    return {
        "agent": FUNCTIONS if section in ("tool_faults", "context_attacks", RULES) else PROGRAM,
        "golden_prompts": ["How much?"],
        "models": {"judge": {"provider": "openai", "name": "gpt-4o-mini"}},
        "contract": {"name": "Shown", "invariants": rules, "chaos_matrix": matrix},
        **(WORLD if section in ("service_faults", "world_faults", RULES) else {}),
    }


@pytest.mark.parametrize("section", SECTIONS)
def test_the_examples_of_a_section_read_without_a_word(section: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "verify.py").write_text("")
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(whole(section), sort_keys=False))
    checked = check(tmp_path / "spec.yaml", environ={"OPENAI_API_KEY": "a-long-value"})
    assert [f"{p.path} {p.message}" for p in checked.problems] == []
    assert checked.spec is not None


@pytest.mark.parametrize("shown", PAGES, ids=lambda shown: f"{shown.section}.{shown.name}")
def test_a_page_is_whole(shown: PluginPage) -> None:
    assert shown.what.endswith(".")
    assert shown.acts
    assert shown.met
    assert all(setting.meaning for setting in (*shown.settings, *shown.common))
    assert f": {shown.name}\n" in shown.example
    assert [f for f in shown.settings if f.required and f.key.upper() in shown.example] == []


def test_an_attack_on_the_input_lists_no_key_that_is_refused() -> None:
    tools = {"tool", "match", "match_url"}
    attacks = {shown.name: shown for shown in PAGES if shown.section == "context_attacks"}
    listed = {name: {setting.key for setting in shown.common} & tools for name, shown in attacks.items()}
    assert listed == {name: tools if name == "indirect_injection" else set() for name in attacks}


def test_what_pages_point_to_is_there() -> None:
    known = {f"{shown.section}.{shown.name}" for shown in PAGES}
    assert {other for shown in PAGES for other in shown.see} <= known
    assert {shown.section for shown in PAGES} == set(SECTIONS)


def test_a_name_of_several_sections_gives_several_pages_and_a_full_name_one() -> None:
    assert [shown.section for shown in find_pages("fault", "timeout")] == [
        "tool_faults", "llm_faults", "http_faults", "service_faults",
    ]  # fmt: skip
    assert [shown.section for shown in find_pages("fault", "llm_faults.timeout")] == ["llm_faults"]
    assert find_pages("fault", "contains") == []
    with pytest.raises(KeyError):
        build_page("tool_faults", "nothing")


@pytest.mark.parametrize(
    ("name", "anywhere"),
    [("file_exists", False), ("llm_as_judge", True), ("claim_matches_state", True), ("custom", True)],
)
def test_the_page_of_a_check_says_whether_it_works_without_a_sandbox(name: str, anywhere: bool) -> None:
    [page] = find_pages("check", name)
    assert ("needs a sandbox." in page.acts.lower()) is not anywhere
