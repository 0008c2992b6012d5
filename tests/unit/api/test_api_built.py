"""A spec that is built in Python: the schema and the errors of a file, at the line of the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from error_code import has_code
from golden_words import Golden
from holdfast.errors import UsageError
from holdfast.runner.job import Job


def module_agent(question: str) -> str:
    return question


def written(agent: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    contract = {
        "name": "Built",
        "invariants": [{"id": "ends", "type": "completes"}],
        "chaos_matrix": [{"name": "calm"}],
    }
    section = agent or {"type": "python", "endpoint": "shop:answer"}
    return {"agent": section, "golden_prompts": ["x"], "contract": {**contract, **changed}}


def problems(made: Callable[[], object]) -> list[str]:
    with pytest.raises(holdfast.SpecError) as refused:
        made()
    return [f"{one.path}: {one.message}" for one in refused.value.problems if one.severity == "error"]


def test_a_dict_is_read_as_a_file_of_its_text_would_be(tmp_path: Path) -> None:
    import yaml

    file = tmp_path / "same.yaml"
    file.write_text(yaml.safe_dump(written(), sort_keys=False))
    built, loaded = holdfast.build(written()), holdfast.load(file)
    assert built.rules == loaded.rules == ("ends",)
    assert built.scenarios == loaded.scenarios == ("calm",)
    assert [one.settings for one in built.spec.invariants] == [one.settings for one in loaded.spec.invariants]


def test_every_place_in_it_is_the_line_of_the_call() -> None:
    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
    built = holdfast.build(written())
    assert Path(built.spec.path).name == Path(__file__).name
    assert built.spec.invariants[0].position.line == line  # type: ignore[union-attr]


def test_what_a_file_would_be_refused_for_is_reported_by_key_at_that_line() -> None:
    rule = {"id": "ends", "type": "completes", "severty": "high"}
    with pytest.raises(holdfast.SpecError) as refused:
        holdfast.build(written(invariants=[rule]))
    note = str(refused.value)
    assert "contract.invariants[0].severty  unknown key" in note
    assert "did you mean severity?" in note
    assert "high" not in note, "the line of the code is not shown: a secret may stand there"


def test_what_no_file_could_hold_is_refused(golden: Golden) -> None:
    golden(problems(lambda: holdfast.build({**written(), "golden_prompts": {"a", "b"}})))
    loop: dict[str, Any] = {}
    loop["again"] = loop
    golden(problems(lambda: holdfast.build({**written(), "models": loop}))[0])
    golden(problems(lambda: holdfast.build({**written(), (1, 2): "x"}))[0])


def test_a_function_of_a_module_is_named_and_one_that_no_other_process_finds_is_refused_unless_inline(
    golden: Golden,
) -> None:
    assert holdfast.build(written({"type": "python", "endpoint": module_agent})).spec.agent.endpoint == (
        f"{__name__}:module_agent"
    )

    def local(question: str) -> str:
        return question

    section = {"type": "python", "endpoint": local}
    golden(problems(lambda: holdfast.build(written(section)))[0])
    built = holdfast.build(written({**section, "isolation": "inline", "tools": [lambda: 1, lambda: 2]}))
    assert built.spec.agent.endpoint == "holdfast.api.inline_callables:local"
    assert [tool.path for tool in built.spec.agent.tools] == [
        "holdfast.api.inline_callables:lambda",
        "holdfast.api.inline_callables:lambda_2",
    ]
    assert built.functions["local"] is local


def test_a_fault_must_stand_in_the_list_of_its_plane(golden: Golden) -> None:
    matrix = [{"name": "down", "llm_faults": [holdfast.fault("tool", "error", tool="x")]}]
    golden(problems(lambda: holdfast.build(written(chaos_matrix=matrix))))


def test_values_that_are_used_twice_are_written_twice() -> None:
    rule = holdfast.check("contains", value="x")
    rules = [{"id": "a", "check": rule}, {"id": "b", "check": rule}]
    built = holdfast.build(written(invariants=rules))
    assert [one.settings for one in built.spec.invariants] == [{"value": "x"}] * 2
    assert built.spec.built is not None
    assert "&" not in built.spec.built.text


def test_a_spec_that_changed_since_it_was_loaded_is_not_run_with_other_options(tmp_path: Path) -> None:
    import yaml

    file = tmp_path / "spec.yaml"
    file.write_text(yaml.safe_dump(written()))
    loaded = holdfast.load(file)
    file.write_text(yaml.safe_dump(written(name="Other")))
    with pytest.raises(UsageError, check=has_code("spec-changed")):
        holdfast.run(loaded, seed=7, runs=tmp_path)


def test_a_section_that_is_not_in_this_release_is_reported_without_a_file() -> None:
    section = {"type": "paragon", "model": "m"}
    built = holdfast.build({**written(section), "models": {"m": {"name": "x", "provider": "openai"}}})
    with pytest.raises(holdfast.SpecError):
        Job(built.spec, __import__("holdfast.plan").plan.RunOptions(), {})
