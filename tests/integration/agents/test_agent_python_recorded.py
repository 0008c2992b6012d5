"""A Python agent in a replayed session: its declared tools answer what was recorded, in every isolation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_python_site import observe, spec_of, trial_of
from golden_words import Golden
from holdfast.model.codec import encode
from holdfast.model.observation import Observation
from holdfast.model.task import RecordedResponse, Recording, Task
from planes_kit import answer, replay, uses

AGENT = """
import asyncio, holdfast, threading

def price(item):
    with open("ran.log", "a") as log: log.write(item)
    return {"price": 12.5}

async def stock(item):
    return 99

def ask(prompt):
    said = []
    for item in prompt.split():
        try:
            said.append(str(price(item)["price"]))
        except holdfast.InjectedError as failed:
            said.append(f"{failed.status_code} {failed.body}")
    return ", ".join(said)
"""
every_isolation = pytest.mark.parametrize("isolation", ["fresh", "worker", "inline"])


def replayed(folder: Path, task: Task, *, code: str = AGENT, **agent: Any) -> Observation:
    spec = spec_of(folder, code, tools=("agent:price", "agent:stock"), **agent)
    trial = replace(trial_of(), task=task)
    return observe(replace(spec, tasks=(task,)), trial)[0]


@every_isolation
def test_recorded_responses_are_given_in_order_and_the_tool_is_not_run(
    tmp_path: Path, isolation: Any, golden: Golden
) -> None:
    task = replay(
        answer("price", {"price": 1}),
        answer("price", {"price": 2}),
        answer("price", "down", 503),
        answer("price", None, 0),
        answer("weather", 1),
        answer("weather", 2),
        prompt="a b c d e",
    )
    seen = replayed(tmp_path, task, isolation=isolation)
    assert seen.error == ""
    assert (seen.turns[0].text or "").split(", ") == ["1", "2", "503 down", "None None", "None None"]
    assert uses(seen.recorded) == [
        ("price", 1, 200), ("price", 2, 200), ("price", 3, 503), ("price", 4, 0), ("price", 0, 0),
    ]  # fmt: skip
    golden(seen.notes)
    assert not (tmp_path / "ran.log").exists()
    assert [(event.tool, event.status, event.unsent) for event in seen.trace] == [
        ("price", None, False), ("price", None, False), ("price", 503, False), ("price", None, True),
        ("price", None, True),
    ]  # fmt: skip


@every_isolation
def test_live_runs_the_tool_where_nothing_was_recorded(tmp_path: Path, isolation: Any, golden: Golden) -> None:
    seen = replayed(tmp_path, replay(answer("price", {"price": 1}), live=True, prompt="a b"), isolation=isolation)
    assert seen.turns[0].text == "1, 12.5"
    assert (tmp_path / "ran.log").read_text() == "b"
    golden(seen.notes)


@every_isolation
def test_a_session_whose_tools_are_not_called_says_so(tmp_path: Path, isolation: Any, golden: Golden) -> None:
    seen = replayed(tmp_path, replay(answer("price", 1), prompt=" "), isolation=isolation)
    assert seen.turns[0].text == ""
    golden(seen.notes)


def test_each_trial_of_a_worker_begins_the_recording_again(tmp_path: Path) -> None:
    task = replay(answer("price", {"price": 1}), prompt="a")
    spec = replace(spec_of(tmp_path, AGENT, tools=("agent:price",), isolation="worker"), tasks=(task,))
    trials = [replace(trial_of(n=n), task=task) for n in range(2)]
    assert [seen.turns[0].text for seen in observe(spec, *trials)] == ["1", "1"]


def test_turns_of_one_trial_go_on_with_it(tmp_path: Path) -> None:
    recording = Recording("s1", (answer("price", {"price": 1}), answer("price", {"price": 2})))
    seen = replayed(tmp_path, Task(("a", "b"), "replay", recording=recording))
    assert [turn.text for turn in seen.turns] == ["1", "2"]


def test_a_latency_beyond_the_agents_time_is_its_timeout(tmp_path: Path) -> None:
    seen = replayed(tmp_path, replay(answer("price", {"price": 1}, latency_ms=60_000), prompt="a"), timeout_ms=1000)
    assert seen.ending == "timeout"
    assert uses(seen.recorded) == [("price", 1, 200)]


def test_async_tools_at_once_and_threads_get_each_response_once(tmp_path: Path) -> None:
    code = (
        AGENT.replace("def ask(prompt):", "def before(prompt):")
        + """
async def ask(prompt):
    both = await asyncio.gather(*[stock(n) for n in range(10)])
    got = []
    threads = [threading.Thread(target=lambda: got.append(price("x"))) for _ in range(5)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return f"{sorted(both)} {sorted(got)}"
"""
    )
    recording = [*(answer("stock", n, latency_ms=5) for n in range(10)), *(answer("price", n) for n in range(5))]
    seen = replayed(tmp_path, replay(*recording), code=code)
    assert seen.turns[0].text == f"{list(range(10))} {list(range(5))}"
    assert len(seen.recorded) == 15


def test_a_response_that_is_not_json_is_text(tmp_path: Path) -> None:
    code = "def price(item): return 1\nasync def stock(item): return 1\ndef ask(prompt): return price('x')"
    task = Task(("hi",), "replay", recording=Recording("s1", (RecordedResponse("price", "<html>no JSON"),)))
    assert replayed(tmp_path, task, code=code).turns[0].text == "<html>no JSON"


def test_a_task_without_a_recording_is_as_before(tmp_path: Path) -> None:
    seen = replayed(tmp_path, Task(("a",)))
    assert (seen.turns[0].text, seen.recorded, seen.notes) == ("12.5", (), ())
    assert b"recorded" not in encode(seen)


def test_a_generator_streams_as_ever_where_only_urls_were_recorded(tmp_path: Path) -> None:
    code = """
    def price(item):
        for n in range(3):
            seen.append(n)
            yield n
    async def stock(item): return 1
    seen = []
    def ask(prompt):
        first = next(iter(price("x")))
        return f"{first} {seen}"
    """
    seen = replayed(tmp_path, replay(answer("https://api.test/*", 1)), code=code)
    assert seen.turns[0].text == "0 [0]"
