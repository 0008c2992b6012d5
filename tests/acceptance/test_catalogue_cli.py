"""`holdfast faults` and `holdfast checks`: the lists, one page, and names that are none."""

from __future__ import annotations

import pytest
from cli import MakeProject

from holdfast import plugins

LOST_REPLY = """\
tool_faults: lost_reply
  Makes the call, then loses the reply: the caller cannot know that it succeeded.

  acts        On the tools of a Python agent, on MCP tools, and with `match_url` on HTTP requests.
              Otherwise on a tool result on its way to the model.
  met         The other side has answered, and the caller was connected when the reply was lost.
  settings    none of its own
  also takes  probability, after_calls, times, every, on_call, match, tool, match_url, raises
  see         checks side_effect_once, faults service_faults.killed_mid_transaction

    tool_faults:
      - tool: search
        mode: lost_reply
"""
LATENCY = """\
invariants: latency
  The answer came within `max_ms`.

  reads       How long the answer took.
  verdict     It fails on a timeout and is unproven if there is no answer for another reason.
  settings
    max_ms: a number, at least 0; required
        The limit in milliseconds.
  also takes  id, description, severity, weight, gate, when, negate, over, probes,
              replica_aggregation, dangerous_prompts

    - id: latency
      type: latency
      max_ms: 5000
"""


@pytest.mark.parametrize(
    ("words", "printed"), [(("faults", "lost_reply"), LOST_REPLY), (("checks", "latency"), LATENCY)]
)
def test_one_page_is_printed_as_it_stands(project: MakeProject, words: tuple[str, ...], printed: str) -> None:
    result = project({}).cli(*words)
    assert (result.code, result.out) == (0, printed)


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
