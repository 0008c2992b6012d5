"""Which parts a file declares, and what each of them asks, holds and meets."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.spec import LoadOptions, check

AGENT = 'version: 1\nid: a-b\nagent: {type: python, endpoint: "a:b", tools: ["a:t"]}\n'
PROMPTS = "golden_prompts: [p, q]\n"
RULES = "invariants: [{type: contains, value: x}, {id: d, type: contains, value: y, dangerous_prompts: true}]\n"
CHAOS = "chaos: {tool_faults: [{tool: t, mode: error}]}\n"
CONTRACT = "contract: {name: c, invariants: [{id: d, type: contains, value: z, description: w}]}\n"
MATRIX = "chaos_matrix: [{name: quiet}, {name: dead, tool_faults: [{tool: t, mode: timeout}]}]\n"
TASK = "task: {prompt: t}\n"
MAP = "invariants: {r: {description: d, check: {type: contains, value: x}}}\n"
REPLAYS = "replays: {sessions: [{id: s, input: i}]}\n"


def read(folder: Path, text: str, **more: object):
    (folder / "a.py").write_text("def b(x): return t()\ndef t(): return 1\n")
    path = folder / "s.yaml"
    path.write_text(text)
    return check(path, environ={}, options=LoadOptions(**more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (TASK + MAP, ("scenario",)),
        (TASK + MAP + MATRIX, ("scenario", "contract")),
        (PROMPTS + CONTRACT + MATRIX, ("contract",)),
        (PROMPTS + CONTRACT, ()),
        (PROMPTS + RULES, ("mutation",)),
        (PROMPTS + RULES + CHAOS, ("mutation", "chaos")),
        (PROMPTS + RULES + CHAOS + CONTRACT + MATRIX + REPLAYS, ("contract", "mutation", "chaos", "replay")),
        (PROMPTS + CHAOS + CONTRACT + MATRIX, ("contract",)),
    ],
)
def test_sections_decide_the_parts(tmp_path: Path, text: str, parts: tuple[str, ...]) -> None:
    found = read(tmp_path, AGENT + text, part="run" if "scenario" in parts else "contract")
    assert found.spec is not None, found.problems
    assert found.spec.declares == parts


def test_run_takes_the_task_first_and_prompts_else(tmp_path: Path) -> None:
    assert read(tmp_path, AGENT + TASK + MAP + PROMPTS, part="run").spec.part == "scenario"
    assert read(tmp_path, AGENT + PROMPTS + RULES, part="run").spec.part == "mutation"


def test_a_run_rule_may_share_its_id_with_one_of_the_contract(tmp_path: Path) -> None:
    text = AGENT + PROMPTS + RULES + CONTRACT + MATRIX
    held = {part: read(tmp_path, text, part=part).spec.invariants for part in ("contract", "mutation")}
    assert [rule.settings["value"] for rule in held["contract"]] == ["z"]
    assert [(rule.id, rule.attacks_only) for rule in held["mutation"]] == [("rule-1", False), ("d", True)]


def test_the_chaos_block_is_the_weather_of_chaos_and_of_nothing_else(tmp_path: Path) -> None:
    text = AGENT + PROMPTS + RULES + CHAOS + CONTRACT + MATRIX
    names = {
        part: [(s.name, s.calm) for s in read(tmp_path, text, part=part).spec.scenarios]
        for part in ("contract", "mutation", "chaos")
    }
    assert names["contract"] == [("quiet", True), ("dead", False)]
    assert names["mutation"] == [("calm", True)]
    assert names["chaos"] == [("calm", True), ("chaos", False)]
    assert read(tmp_path, text, part="chaos").spec.beside == ("calm",)
    assert [s.name for s in read(tmp_path, text, part="mutation", chaos=True).spec.scenarios] == ["chaos"]


def test_a_profile_replaces_the_block_and_implies_chaos(tmp_path: Path) -> None:
    text = AGENT + PROMPTS + RULES + CHAOS
    spec = read(tmp_path, text, part="mutation", chaos_profile="hostile_tools").spec
    assert [s.name for s in spec.scenarios] == ["hostile_tools"]
    spec = read(tmp_path, text, part="chaos", chaos_profile="hostile_tools").spec
    assert [s.name for s in spec.scenarios] == ["calm", "hostile_tools"]


@pytest.mark.parametrize(
    ("text", "asked", "path"),
    [
        (PROMPTS + RULES, {"part": "mutation", "chaos": True}, "chaos"),
        (PROMPTS + RULES, {"part": "chaos"}, "chaos"),
        (PROMPTS + RULES + "chaos: {}\n", {"part": "chaos"}, "chaos"),
        (PROMPTS + RULES, {"part": "chaos", "chaos_profile": "hostile_tool"}, "--chaos-profile"),
        (PROMPTS + CONTRACT, {"part": "mutation"}, "invariants"),
        (CONTRACT + CHAOS, {"part": "chaos"}, "golden_prompts"),
        (PROMPTS + RULES + "chaos: {tool_faults: [{tool: u, mode: error}]}\n", {"part": "chaos"}, "chaos.tool_faults"),
    ],
)
def test_what_a_part_lacks_is_an_error(tmp_path: Path, text: str, asked: dict[str, object], path: str) -> None:
    found = read(tmp_path, AGENT + text, **asked)
    assert found.spec is None
    assert [p.path for p in found.problems if p.severity == "error" and p.path.startswith(path)]


RUNNING = 'version: 1\nagent: {endpoint: "http://localhost:8000/ask"}\n'
UNMET = "chaos_matrix: [{name: quiet}, {name: dead, tool_faults: [{tool: '*', mode: error}]}]\n"
LOST = "replays: {sessions: [{file: gone.yaml}]}\n"
MODELLESS = "mutations: {types: [paraphrase]}\n"
EVERY = ("contract", "mutation", "chaos", "replay", "run", "ci", "verify")


@pytest.mark.parametrize(
    ("text", "code", "refused"),
    [
        (UNMET, "unreachable-fault", {"contract", "ci"}),
        (MATRIX, "unreachable-fault", {"contract", "ci"}),
        (LOST + "chaos_matrix: [{name: quiet}]\n", "missing-file", {"replay", "ci"}),
        (MODELLESS + "chaos_matrix: [{name: quiet}]\n", "no-model", {"mutation", "run", "ci"}),
        ("model: {provider: openai}\n" + MODELLESS, "missing-key", {"mutation", "run", "ci"}),
    ],
)
def test_what_one_part_cannot_use_refuses_only_the_commands_that_run_it(
    tmp_path: Path, text: str, code: str, refused: set[str]
) -> None:
    chaos = "chaos: {context_attacks: [{type: memory_poisoning, payload: x}]}\n"
    whole = RUNNING + PROMPTS + RULES + chaos + CONTRACT + text
    for part in EVERY:
        checked = read(tmp_path, whole, part=part)
        found = [p.severity for p in checked.problems if p.code == code]
        assert found == ["error" if part in refused else "warning"], (part, checked.problems)


def test_a_tool_that_nobody_has_is_a_mistake_for_every_part(tmp_path: Path) -> None:
    text = AGENT + PROMPTS + RULES + CONTRACT + MATRIX.replace("tool: t", "tool: u")
    for part in EVERY:
        problems = read(tmp_path, text, part=part).problems
        assert "unknown-tool" in [p.code for p in problems if p.severity == "error"], part


@pytest.mark.parametrize("more", ["", RULES, CONTRACT, CONTRACT + MATRIX, TASK, RULES + REPLAYS])
def test_verify_needs_an_agent_and_a_prompt_only(tmp_path: Path, more: str) -> None:
    spec = read(tmp_path, RUNNING + (TASK if more == TASK else PROMPTS + more), part="verify").spec
    assert spec is not None
    assert [task.prompt for task in spec.tasks][:1] == ["t" if more == TASK else "p"]
