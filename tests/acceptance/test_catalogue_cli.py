"""`holdfast faults` and `holdfast checks`: the lists, one page, and names that are none."""

from __future__ import annotations

import pytest
from cli import MakeProject

from holdfast import plugins

LOST_REPLY = "    tool_faults:\n      - tool: search\n        mode: lost_reply\n"
LATENCY = "    - id: latency\n      type: latency\n      max_ms: 5000\n"


@pytest.mark.parametrize(
    ("words", "title", "labels", "example"),
    [
        (("faults", "lost_reply"), "tool_faults: lost_reply", ["acts", "met", "settings", "also", "see"], LOST_REPLY),
        (("checks", "latency"), "invariants: latency", ["reads", "verdict", "settings", "also"], LATENCY),
    ],
)
def test_one_page_has_its_parts_in_order_and_ends_with_an_example(
    project: MakeProject, words: tuple[str, ...], title: str, labels: list[str], example: str
) -> None:
    result = project({}).cli(*words)
    lines = result.out.splitlines()
    assert (result.code, lines[0], lines[2]) == (0, title, "")
    page = lines[3 : lines.index("", 3)]
    assert [line.split()[0] for line in page if line[2] != " "] == labels
    assert result.out.endswith(f"\n\n{example}")


def test_a_fault_of_several_sections_has_a_page_for_each(project: MakeProject) -> None:
    made = project({})
    assert [page["section"] for page in made.cli("faults", "timeout", "--json").json] == [
        "tool_faults", "llm_faults", "http_faults", "service_faults",
    ]  # fmt: skip
    (one,) = made.cli("faults", "llm_faults.timeout", "--json").json
    (setting,) = one["settings"]
    assert (setting["key"], setting["default"], setting["required"]) == ("delay_ms", "10000", False)
    assert setting.keys() == {"key", "type", "default", "required", "meaning"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("faults", "tiemout"), "did you mean timeout?"),
        (("faults", "llm_faults.tiemout"), "did you mean timeout?"),
        (("faults", "contains"), "it is a check: holdfast checks contains"),
        (("checks", "lost_reply"), "it is a fault: holdfast faults lost_reply"),
        (("checks", "zzzzzzzz"), "holdfast checks lists them all"),
    ],
)
def test_a_name_that_is_none_gets_the_near_miss(project: MakeProject, words: tuple[str, ...], said: str) -> None:
    made = project({})
    result = made.cli(*words)
    assert (result.code, result.out) == (4, "")
    assert said in result.err
    assert made.cli(*words, "--json").json["errors"][0]["hint"] == said


def test_the_lists_name_every_plug_in(project: MakeProject) -> None:
    made = project({})
    faults = {(row["family"], row["name"]) for row in made.cli("faults", "--json").json}
    assert faults == {(f, n) for f in plugins.BUILT_IN if f.startswith("faults.") for n in plugins.BUILT_IN[f]}
    checks = made.cli("checks").out
    assert [name for name in plugins.BUILT_IN["checks"] if f"  {name} " not in checks] == []
