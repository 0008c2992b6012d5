"""The contract format, key by key: accepted, with its default, and never ignored."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from files1 import (
    CALM,
    ECHO,
    RULES,
    SPEC,
    HttpAgent,
    contract_run,
    errors_of,
    http_agent,
    http_section,
    project,
    spec_of,
    tell,
)

from holdfast.execute.open_site import count_slots

# -- top ------------------------------------------------------------------------------------------


def test_replicas_default_to_one_and_multiply_the_trials(tmp_path: Path) -> None:
    assert len(contract_run(tmp_path, SPEC).cell("cites")["trials"]) == 1
    assert len(contract_run(tmp_path, SPEC + "replicas: 3\n").cell("cites")["trials"]) == 3
    assert contract_run(tmp_path, SPEC + "replicas: 3\n", ECHO, "--replicas", "2").contract["replicas"] == 2


MUTATIONS = SPEC + "mutations: {count: 3, types: [noise, custom], custom_templates: {loud: '{prompt}!'}}\n"


@pytest.mark.parametrize("command", [("run",), ("run", "--chaos-only"), ("replay", "run")])
def test_commands_that_would_need_other_sections_refuse(tmp_path: Path, command: tuple[str, ...]) -> None:
    project(tmp_path, MUTATIONS)
    told = tell(tmp_path, *command)
    assert told.code == 4, told
    assert told.err


def test_ci_runs_what_the_file_has(tmp_path: Path) -> None:
    project(tmp_path, MUTATIONS)
    told = tell(tmp_path, "ci", "--json")
    assert (told.code, told.json["score"]) == (0, 100.0)
    assert [name for name, part in told.json["parts"].items() if part["ran"]] == ["contract"]
    assert tell(tmp_path, "score").out == "100.00\n"


# -- agent (what a Python agent reads; HTTP keys have a file of their own) ------------------------


def test_agent_env_reaches_the_agent_in_every_isolation(tmp_path: Path) -> None:
    agent = "import os\nfirst = os.environ['COLOUR']\ndef answer(p): return 'source ' + first + os.environ['COLOUR']"
    for isolation in ("fresh", "worker", "inline"):
        spec = SPEC.replace("type: python", f"type: python, isolation: {isolation}, env: {{COLOUR: blue, N: 3}}")
        spec = spec.replace("bot:answer", f"{isolation}_bot:answer")
        (tmp_path / f"{isolation}_bot.py").write_text(agent)
        told = contract_run(tmp_path, spec)
        assert told.code == 0, told
        assert told.trial("cites")["answer"] == "source blueblue"


# -- contract and its invariants ------------------------------------------------------------------


def test_method_semantic_without_its_extra_is_an_error_with_the_pip_line_or_is_named(tmp_path: Path) -> None:
    found = errors_of(tmp_path, SPEC.replace("contains, value: source", "similarity, expected: x, method: semantic"))
    try:
        import wordllama  # noqa: F401  # only asks whether the extra is there
    except ImportError:
        assert [p.path for p in found] == ["contract.invariants[0].method"]
        assert "pip install" in found[0].message + found[0].hint
    else:
        assert found == []
    told = contract_run(tmp_path, SPEC.replace("contains, value: source", "similarity, expected: x"))
    assert "lexical" in json.dumps(told.trial("cites"))


# -- scoring, output, advanced --------------------------------------------------------------------


@pytest.mark.parametrize(("output", "file"), [
    ("{format: html}", "reports/holdfast-0001.html"),
    ("{format: json, path: out}", "out/holdfast-0001.json"),
    ("{format: json, path: out, filename_template: 'run-{run}'}", "out/run-0001.json"),
    ("{format: junit}", "reports/holdfast-0001.xml"),
    ("{format: markdown, filename_template: 'run-{run}.md'}", "reports/run-0001.md"),
])  # fmt: skip
def test_output_writes_the_report_it_asks_for(tmp_path: Path, output: str, file: str) -> None:
    project(tmp_path, SPEC + f"output: {output}\n")
    assert tell(tmp_path, "contract", "run").code == 0
    text = (tmp_path / file).read_text()
    if file.endswith("json"):
        assert json.loads(text)["score"] == 100.0
    else:
        begins = {"html": "<!doctype html>", "xml": "<?xml version='1.0' encoding='utf-8'?>\n<testsuites", "md": "## "}
        assert text.startswith(begins[file.rpartition(".")[2]])


def test_output_terminal_writes_no_file_and_no_output_section_writes_none(tmp_path: Path) -> None:
    for more in ("output: {format: terminal}\n", ""):
        project(tmp_path, SPEC + more)
        assert tell(tmp_path, "contract", "run").code == 0
    assert not (tmp_path / "reports").exists()


def test_output_in_another_folder_lies_beside_the_spec(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    project(tmp_path / "sub", SPEC + "output: {format: json}\n")
    assert tell(tmp_path, "contract", "run", "-c", "sub/holdfast.yaml").code == 0
    assert (tmp_path / "sub/reports/holdfast-0001.json").exists()


def test_advanced_concurrency_is_how_many_run_at_once(tmp_path: Path) -> None:
    def busiest(limit: int) -> int:
        now = most = 0

        async def counting(request: Any) -> Any:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.05)
            now -= 1
            return {"output": "source"}

        with http_agent(counting) as agent:
            spec = http_section(agent) + RULES + CALM + f"replicas: 12\nadvanced: {{concurrency: {limit}}}\n"
            assert contract_run(tmp_path, spec).code == 0
        return most

    assert (busiest(1), busiest(4)) == (1, 4)
    assert count_slots(spec_of(tmp_path, http_section(HttpAgent("http://h")) + RULES + CALM), None) == 10
