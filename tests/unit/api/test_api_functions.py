"""Running from Python: results as values, also where a loop runs; stored, judged anew, interrupted in order."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from error_code import has_code
from golden_words import Golden
from holdfast.errors import UsageError
from holdfast.model.events import RunEnded, TrialEnded

GUESS = "It costs <b>$25</b>."


def find_item(name: str) -> str:
    return "$24.90"


def spec(**changed: Any) -> dict[str, Any]:
    def answer(question: str) -> str:
        try:
            return f"It costs {find_item('kettle')}."
        except Exception:
            return GUESS

    return {
        "agent": {"type": "python", "endpoint": answer, "tools": [find_item], "isolation": "inline"},
        "golden_prompts": ["What does <it> cost?"],
        "contract": {
            "name": "<Shop>",
            "invariants": [
                {"id": "price", "check": holdfast.check("contains", value="$24.90"), "severity": "critical"},
                {"id": "sorry", "type": "contains", "value": "cannot see", "when": "tool_faults_active"},
            ],
            "chaos_matrix": [
                {"name": "calm"},
                {"name": "down", "tool_faults": [holdfast.fault("tool", "error", tool="find_item")]},
            ],
        },
        **changed,
    }


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> holdfast.RunResult:
    return holdfast.run(spec(), seed=3, runs=tmp_path_factory.mktemp("api") / "runs")


def test_a_result_has_the_verdict_the_score_and_what_the_exit_code_means(
    result: holdfast.RunResult, golden: Golden
) -> None:
    assert (result.passed, result.exit_code) == (False, 1)
    golden(result.meaning)
    assert result.score.value == pytest.approx(42.86)
    assert result.run.seed == 3
    golden(repr(result))


def test_cells_and_trials_can_be_walked_through(result: holdfast.RunResult) -> None:
    told = {(row.cell.invariant, row.cell.scenario): row.cell.outcome for row in result.cells}
    assert told == {
        ("price", "calm"): "pass",
        ("price", "down"): "fail",
        ("sorry", "calm"): "n/a",
        ("sorry", "down"): "fail",
    }
    row = result.cell("price", "down")
    assert [(trial.answer, trial.outcome) for trial in row.trials] == [(GUESS, "fail")]
    assert row.trials[0].again.startswith(f"holdfast.run(…, trials=['{row.trials[0].id}'], seed=3)")
    kinds = [one.trial.kind for one in result.trials]
    assert kinds == ["control", "contract", "contract", "contract"]
    with pytest.raises(UsageError, check=has_code("cell-unknown")):
        result.cell("price", "rain")


def test_a_notebook_shows_the_summary_with_every_text_escaped(result: holdfast.RunResult) -> None:
    shown = result._repr_html_()
    assert "What does &lt;it&gt;" in shown
    assert "<it>" not in shown
    assert "✘ price · down" in str(result)


def test_the_trial_that_again_names_is_run_again(result: holdfast.RunResult, tmp_path: Path) -> None:
    trial = result.cell("price", "down").trials[0]
    again = holdfast.run(spec(), trials=[trial.id], seed=3, runs=tmp_path)
    assert [row.trials[0].answer for row in again.cells] == [trial.answer]


def test_a_report_is_written_by_its_suffix(result: holdfast.RunResult, tmp_path: Path) -> None:
    result.write(tmp_path / "report.json")
    assert '"never' not in (tmp_path / "report.json").read_text()
    assert (tmp_path / "report.json").stat().st_size > 500


def test_a_stored_run_is_judged_by_its_own_rules_or_by_others(result: holdfast.RunResult) -> None:
    same = holdfast.rejudge(result)
    assert {row.cell.outcome for row in same.cells} == {"pass", "fail", "n/a"}
    lenient = spec()
    lenient["contract"]["invariants"] = [{"id": "ends", "type": "completes"}]
    other = holdfast.rejudge(result.id, lenient, runs=result.path.parent)
    assert [(row.cell.invariant, row.cell.scenario, row.cell.outcome) for row in other.cells] == [
        ("ends", "calm", "pass"),
        ("ends", "down", "pass"),
    ]


def test_a_run_that_python_built_is_not_resumed_by_the_command_line(result: holdfast.RunResult) -> None:
    from holdfast.plan import RunOptions
    from holdfast.runner.start import resume_job
    from holdfast.store.rundir import RunDir

    stored = RunDir.find(result.path.parent.absolute(), result.id)
    with pytest.raises(UsageError, check=has_code("run-unusable")):
        resume_job(stored, config=None, force=False, options=RunOptions(), environ={})


def test_it_runs_where_a_loop_runs_already_and_awaited(tmp_path: Path) -> None:
    async def notebook() -> tuple[int, int]:
        return holdfast.run(spec(), runs=tmp_path).exit_code, (
            await holdfast.run_async(spec(), runs=tmp_path)
        ).exit_code

    assert asyncio.run(notebook()) == (1, 1)


def test_listeners_hear_every_event(tmp_path: Path) -> None:
    heard: list[object] = []
    holdfast.run(spec(), runs=tmp_path, listen=heard.append)
    assert sum(isinstance(one, TrialEnded) for one in heard) == 3
    assert isinstance(heard[-1], RunEnded)


def test_a_cancelled_run_is_stored_as_far_as_it_went_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()
    closed: list[str] = []
    monkeypatch.setattr(holdfast.RunResult, "close", lambda result: closed.append(result.id))

    async def slow(question: str) -> str:
        asked.set()
        await asyncio.sleep(60)
        return "never"

    async def cancel() -> bool:
        agent = {"type": "python", "endpoint": slow, "isolation": "inline"}
        contract = {**spec()["contract"], "chaos_matrix": [{"name": "calm"}]}
        running = asyncio.ensure_future(
            holdfast.run_async(spec(agent=agent, contract=contract), preflight=False, runs=tmp_path)
        )
        await asyncio.to_thread(asked.wait, 30)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        return running.cancelled()

    assert asyncio.run(cancel())
    assert closed == ["0001"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".gitignore", "0001"]
    assert '"complete":false' in (tmp_path / "0001/ended.json").read_text().replace(" ", "")


def test_a_file_that_is_not_there_is_reported_without_a_trace(tmp_path: Path, golden: Golden) -> None:
    with pytest.raises(holdfast.SpecError) as refused:
        holdfast.load(tmp_path / "none.yaml")
    golden(str(refused.value))


def test_a_task_is_run_where_there_is_no_contract(tmp_path: Path) -> None:
    found = holdfast.run(
        {
            "version": 1,
            "id": "a-task",
            "task": {"prompt": "x"},
            "agent": {"type": "python", "endpoint": lambda question: "yes", "isolation": "inline"},
            "invariants": {"says": {"description": "says yes", "check": holdfast.check("contains", value="yes")}},
        },
        runs=tmp_path,
    )
    assert [(row.case.scenario, row.case.status) for row in found.cases] == [("calm", "pass")]


@pytest.mark.parametrize(
    "given", [{"seed": -1}, {"replicas": 0}, {"concurrency": 0}, {"min_score": 101}, {"min_score": float("nan")}]
)
def test_a_number_that_the_command_line_would_not_take_is_refused(given: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(given))} is .*, expected"):
        holdfast.run(spec(), runs=tmp_path, **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"part": "nope"}, "part is 'nope', expected one of contract"),
        ({"part": ["run"]}, r"part is \['run'\], expected one of"),
        ({"seed": "x"}, "seed is 'x', expected a whole number, 0 to"),
        ({"seed": True}, "seed is True, expected a whole number"),
        ({"replicas": 2.0}, "replicas is 2.0, expected a whole number, 1 to 100000"),
        ({"concurrency": "2"}, "concurrency is '2', expected a whole number, 1 or more"),
        ({"min_score": "90"}, "min_score is '90', expected a number, 0 to 100"),
        ({"strict": "no"}, "strict is 'no', expected True or False"),
    ],
)
def test_what_has_no_such_value_is_refused_before_anything_is_begun(
    given: dict[str, Any], said: str, tmp_path: Path
) -> None:
    for source in (spec(), holdfast.build(spec())):
        with pytest.raises(UsageError, match=f"^{said}"):
            holdfast.run(source, runs=tmp_path, **given)
        with pytest.raises(UsageError, match=f"^{said}"):
            asyncio.run(holdfast.run_async(source, runs=tmp_path, **given))
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_is_nearly_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        holdfast.build(spec(), part="contrat")  # type: ignore[arg-type]
    assert refused.value.__notes__ == ["did you mean contract?"]


def test_one_scenario_may_be_named_as_it_is(tmp_path: Path) -> None:
    assert {row.cell.scenario for row in holdfast.run(spec(), scenarios="calm", runs=tmp_path).cells} == {"calm"}


def test_a_dict_of_tools_is_a_registry_whose_functions_meet_faults(tmp_path: Path) -> None:
    tools = {"look": lambda: "blue"}

    def answer(question: str) -> str:
        try:
            return tools["look"]()
        except Exception:
            return "$24.90"

    agent = {"type": "python", "endpoint": answer, "tool_registry": tools, "isolation": "inline"}
    contract = {
        **spec()["contract"],
        "chaos_matrix": [{"name": "down", "tool_faults": [{"tool": "look", "mode": "error"}]}],
    }
    found = holdfast.run(spec(agent=agent, contract=contract), runs=tmp_path)
    assert found.cell("price", "down").cell.outcome == "pass"


def test_what_is_not_a_spec_and_no_run_is_reported(tmp_path: Path) -> None:
    nothing: Any = 5
    for refused in (holdfast.run, holdfast.load, holdfast.build):
        with pytest.raises(UsageError) as error:
            refused(nothing)
        assert error.value.code == "argument-invalid"
    with pytest.raises(UsageError) as error:
        holdfast.rejudge(nothing, runs=tmp_path)
    assert error.value.code == "argument-invalid"
