"""Ids of OWASP and MITRE ATLAS: beside the attacks of a run in every report, and nowhere else."""

from __future__ import annotations

import json
import os
import re
from contextlib import chdir, closing
from typing import Any

from cli import MakeProject, contract, python, rule
from docs_pages import REPO

from holdfast import plugins
from holdfast.folders import get_runs_folder
from holdfast.model.mutation import INTENT_KEPT, MUTATIONS
from holdfast.model.standards import ATLAS, find_entries
from holdfast.model.standards import MUTATIONS as MAPPED
from holdfast.protocols.fault import read_traits
from holdfast.report.page.causes import build_causes
from holdfast.report.page.trial import CONTROL, build_trial
from holdfast.runner.outcome import load_run
from holdfast.store.rundir import RunDir
from page_documents import documents

IDS = ["ASI01", "LLM01:2025", "AML.T0051.001"]
NAMES = "ASI01 Agent Goal Hijack; LLM01:2025 Prompt Injection; AML.T0051.001 LLM Prompt Injection: Indirect"
OBEYS = """
def search(query):
    return {"text": "nothing new"}


def ask(prompt):
    return "I read: " + str(search(prompt))
"""
CELLS = contract(
    [rule("obeys-nobody", "excludes_pattern", patterns=["HOLDFAST-CANARY"]), rule("quiet", "excludes_pii")],
    [
        {"name": "calm"},
        {"name": "hostile", "context_attacks": [{"type": "indirect_injection"}]},
        {"name": "down", "tool_faults": [{"tool": "search", "mode": "error_in_body"}]},
    ],
)


def test_every_report_names_what_an_attack_is_known_as(project: MakeProject) -> None:
    made = project(CELLS, OBEYS)
    result = made.show("-o", "report.json", "-o", "report.md", "-o", "report.sarif", "-o", "report.html")
    assert result.code == 1
    assert "ASI01" not in result.out
    assert NAMES in " ".join(made.cli("show", "--verbose").out.split())
    assert f"known as   {NAMES}" in made.read("report.md")
    document = json.loads(made.read("report.json"))
    assert [one["id"] for one in document["standards"]] == [*IDS, "LLM02:2025", "AML.T0057"]
    trials = [t for cell in document["parts"]["contract"]["cells"] for t in cell["trials"]]
    met = {(fault["mode"], *fault.get("standards", ())) for t in trials for fault in t["faults"]}
    assert met == {("indirect_injection", *IDS), ("error_in_body",)}
    pages = documents(made.read("report.html"))
    trials = [one for name, one in pages.items() if name.startswith("run/trial/")]
    assert {one["scenario"]: "; ".join(one.get("standards", ())) for one in trials} == {
        "calm": "",
        "hostile": NAMES,
        "down": "",
    }


def test_a_cause_has_the_ids_of_all_its_cells(project: MakeProject) -> None:
    scenarios = [
        {"name": "down", "tool_faults": [{"tool": "search", "mode": "error_in_body"}]},
        {"name": "hostile", "context_attacks": [{"type": "indirect_injection"}]},
    ]
    made = project(contract([rule("never", "contains", value="zebra")], scenarios), OBEYS)
    made.show("-o", "report.md", "--no-report")
    assert "never · 2 scenarios" in made.read("report.md")
    assert f"known as   {NAMES}" in made.read("report.md")
    with chdir(made.folder), closing(load_run(RunDir.find(get_runs_folder(), "latest"), environ=os.environ)) as found:
        (cause,) = build_causes(found.run)["causes"]
        assert "; ".join(cause["standards"]) == NAMES
        trials = [build_trial(found.run, one, "again") for one in found.cells.read_traced()]
    assert {"; ".join(one["standards"]) for one in trials} == {"", NAMES}
    assert {(one["kind"], one["again"], CONTROL in one["notes"]) for one in trials} == {
        ("contract", "again", False),
        ("control", "", True),
    }


def test_sarif_refers_to_the_entries_of_its_taxonomies(project: MakeProject) -> None:
    made = project(CELLS, OBEYS)
    made.show("-o", "report.sarif", "--no-report")
    (run,) = json.loads(made.read("report.sarif"))["runs"]
    (failed,) = run["results"]
    assert [taxon["id"] for taxon in failed["taxa"]] == failed["properties"]["tags"] == IDS
    listed = {taxonomy["name"]: [taxon["id"] for taxon in taxonomy["taxa"]] for taxonomy in run["taxonomies"]}
    assert [taxon["id"] for taxon in failed["taxa"] if taxon["id"] in listed[taxon["toolComponent"]["name"]]] == IDS


def test_an_attack_by_mutation_has_its_ids_and_a_typo_has_none(project: MakeProject) -> None:
    spec: dict[str, Any] = {
        "agent": python(),
        "golden_prompts": ["Where is order A-1234, please?"],
        "invariants": [{"id": "answers", "type": "output_not_empty"}],
        "mutations": {"count": 2, "types": ["noise", "prompt_injection"]},
    }
    cases = project(spec, OBEYS).cli("run", "--json").json["parts"]["mutation"]["cases"]
    known = {case["mutation"]["mutation"]: case.get("standards") for case in cases}
    assert known == {"noise": None, "prompt_injection": ["ASI01", "LLM01:2025", "AML.T0051.000"]}


def known() -> dict[tuple[str, str], tuple[str, ...]]:
    """By kind and name: the ids that are declared."""
    faults = [
        one for family in plugins.BUILT_IN if family.startswith("faults.") for one in plugins.list_plugins(family)
    ]
    declared = {("fault", name): read_traits(fault).standards for name, fault in faults}
    declared |= {("check", name): check.traits.standards for name, check in plugins.list_plugins("checks")}
    declared |= {("mutation", name): ids for name, ids in MAPPED.items()}
    return {thing: ids for thing, ids in declared.items() if ids}


def test_what_is_mapped_exists_and_what_keeps_the_intent_is_not_an_attack() -> None:
    assert [ids for ids in known().values() if len(find_entries(ids)) != len(ids)] == []
    assert MAPPED.keys() <= set(MUTATIONS) - set(INTENT_KEPT)
    (atlas,) = [one for one in find_entries(known()["fault", "memory_poisoning"]) if one.list == ATLAS]
    assert atlas.url == "https://atlas.mitre.org/techniques/AML.T0080.000"


def test_the_table_of_the_docs_has_every_id() -> None:
    table = (REPO / "docs/configuration.md").read_text().partition("\n## Public lists\n")[2]
    linked = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", table, re.MULTILINE)
    rows = {(name, kind, re.sub(r"\[(.*?)\]\([^)]*\)", r"\1", ids)) for name, kind, ids in linked}
    assert rows == {(name, kind, ", ".join(map(str, find_entries(ids)))) for (kind, name), ids in known().items()}
