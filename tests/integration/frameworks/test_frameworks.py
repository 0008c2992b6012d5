"""Agents of four frameworks through whole runs: imported, served and started as a program."""

from __future__ import annotations

import pytest
from framework_kit import Folder, Outcome, check_calm, check_honest, check_story
from framework_stories import FRAMEWORKS, SERVED_WEATHER, Framework
from framework_weather import PLAIN_WEATHER, STARTED_WEATHER, Story

OFTEN = "langgraph"
"""It goes through whole runs in `make test`, the others in `make test-long`."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name == OFTEN else pytest.mark.long) for name in FRAMEWORKS],
)
def framework(request: pytest.FixtureRequest) -> Framework:
    return FRAMEWORKS[request.param]


@pytest.fixture(scope="module")
def folder(framework: Framework, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("framework") / "project", framework.agent, framework.model)


@pytest.fixture(scope="module")
def asked(framework: Framework, folder: Folder) -> Outcome:
    """Imported once, forked for every trial."""
    return folder.run(folder.python(**framework.options), PLAIN_WEATHER, "--concurrency", "4")


@pytest.fixture(scope="module")
def served(folder: Folder) -> Outcome:
    """One server for all trials; it streams."""
    return folder.run(folder.http(), SERVED_WEATHER, "--concurrency", "1")


@pytest.fixture(scope="module")
def started(folder: Folder) -> Outcome:
    """A program for every trial."""
    return folder.run(folder.command(), STARTED_WEATHER, "--no-preflight")


@pytest.mark.parametrize("scenario", [one["name"] for one in PLAIN_WEATHER])
def test_what_the_agent_does_when_it_is_asked(framework: Framework, asked: Outcome, scenario: str) -> None:
    check_story(asked.trials[scenario], framework.asked[scenario])


@pytest.mark.parametrize("scenario", [one["name"] for one in SERVED_WEATHER])
def test_what_the_agent_does_when_its_model_streams(framework: Framework, served: Outcome, scenario: str) -> None:
    check_story(served.trials[scenario], framework.streamed[scenario])


def test_a_healthy_trial_is_in_the_trace_with_calls_result_and_tokens(asked: Outcome, served: Outcome) -> None:
    check_calm(asked.trials["calm"], "tool")
    check_calm(served.trials["calm"], "tool_result")


def test_no_cell_passes_without_its_fault_met_and_there_is_no_harness_error(
    asked: Outcome, served: Outcome, started: Outcome
) -> None:
    for run in (asked, served, started):
        assert run.code == 1
        check_honest(run)


def test_a_tool_is_met_by_name_and_the_ledger_says_that_it_ran(served: Outcome) -> None:
    (met,) = served.trials["lie"].met
    assert (met["plane"], met["target"], met["mode"]) == ("tool_result", "search", "wrong_value")
    assert met["ran"] is True
    assert [call["fault"] for call in served.trials["error"].tool_calls] == ["error", "error"]


def test_attacks_that_succeed_are_counted(served: Outcome) -> None:
    assert served.attacks == (2, 1)
    assert len(served.trials["malicious"].canaries) == 1
    assert served.trials["injected"].canaries == []


def test_a_program_that_an_overloaded_model_kills_has_crashed(framework: Framework, started: Outcome) -> None:
    check_story(started.trials["overloaded"], Story("crashed", "exit code 1", "503 503+1 503+2", (1, 2, 3)))
    assert framework.crashes_with in started.trials["overloaded"].observation["output"]


def test_the_same_seed_gives_the_same_wrong_value_however_the_agent_runs(served: Outcome, started: Outcome) -> None:
    one, other = served.trials["lie"], started.trials["lie"]
    assert one.said == other.said
    assert [entry[1:] for entry in one.ledger] == [entry[1:] for entry in other.ledger]


@pytest.mark.parametrize("framework", ["openai_agents"], indirect=True)
@pytest.mark.long
def test_telemetry_without_a_receiver_is_a_note(served: Outcome) -> None:
    seen = served.trials["calm"]
    (sent,) = [event for event in seen.trace if event["event_type"] == "http_call"]
    assert (sent["tool"], sent["status"]) == ("POST https://api.openai.com/v1/traces/ingest", 404)
    assert any("/v1/traces/ingest" in note for note in seen.observation["notes"])


@pytest.mark.parametrize("framework", ["pydantic_ai"], indirect=True)
@pytest.mark.long
def test_the_same_seed_gives_the_same_ledger_with_16_trials_at_once(folder: Folder, asked: Outcome) -> None:
    assert len(asked.trials) >= 16
    again = folder.run(folder.python(tools=["agent:search"]), PLAIN_WEATHER, "--concurrency", "16")
    assert again.ledger == asked.ledger
    assert {name: seen.story.calls for name, seen in again.trials.items()} == {
        name: seen.story.calls for name, seen in asked.trials.items()
    }
