"""Every weakness that the demo's own scenarios show is found by a hunt that does not know them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli import Project

DEMO = Path(__file__).parents[2] / "src" / "holdfast" / "demo" / "finance"
WEAKNESSES = {
    "careless.yaml": [
        ("never-fabricate-when-tools-fail", "market_data_api"),  # search-tool-down
        ("always-cite-source", "truncated_response"),  # llm-degraded
    ],
    "mail-careless.yaml": [("one_mail", "lost_reply")],  # reply-lost
}


@pytest.mark.long  # a few hundred trials, some of which wait
@pytest.mark.parametrize("spec", WEAKNESSES)
def test_a_hunt_finds_the_weaknesses_of_the_demo_blind(spec: str, tmp_path: Path) -> None:
    shutil.copytree(DEMO, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    written: dict[str, Any] = yaml.safe_load((DEMO / spec).read_text())
    (written.get("contract") or written)["chaos_matrix"] = [{"name": "calm"}]
    made = Project(tmp_path, written, (tmp_path / "finance_agent.py").read_text())
    found = made.cli("hunt", "--json", "--max-trials", "300")
    assert found.code == 1, found.out + found.err
    causes = [(cause["rules"], fault) for cause in found.json["causes"] for fault in cause["faults"]]
    for rule, what in WEAKNESSES[spec]:
        assert any(rule in rules and what in (fault["target"], fault["mode"]) for rules, fault in causes), (
            rule,
            causes,
        )
