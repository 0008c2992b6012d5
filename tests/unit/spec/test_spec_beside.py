"""Files beside a spec: what is wrong in them is found when the spec is read, and nothing is resolved."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden_words import Golden
from holdfast.spec import check

SPEC = """
agent:
  type: command
  command: my-agent {mcp_config}
  mcp_config: %s
golden_prompts: [one]
contract:
  name: c
  invariants: [{id: answers, type: completes, description: d}]
  chaos_matrix: [{name: calm}]
"""
SERVERS = '{mcpServers: {search: {url: "https://x.example/mcp", headers: {Authorization: "Bearer ${SOME_TOKEN}"}}}}'


def problems(folder: Path, config: str) -> list[tuple[str, str]]:
    path = folder / "spec.yaml"
    path.write_text(SPEC % config)
    return [(problem.severity, problem.message) for problem in check(path, environ={}).problems]


def test_an_unset_variable_of_an_mcp_server_is_a_warning_and_no_error(tmp_path: Path) -> None:
    assert [severity for severity, _ in problems(tmp_path, SERVERS)] == ["warning"]


def test_an_mcp_config_file_is_read_without_its_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_TOKEN", raising=False)
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"s": {"url": "https://x.example/${SOME_TOKEN}"}}}')
    assert problems(tmp_path, "mcp.json") == []


def test_a_mistake_in_an_mcp_config_file_is_an_error_of_the_spec(tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"s": {"args": []}}}')
    golden(problems(tmp_path, "mcp.json"))
