"""The contract of every Executor, as checks that its author can run.

    failures = await check_executor(open_executor, folder)
    assert not failures

`open_executor(spec)` is an async context with an Executor for a check's spec. Its workers must see `folder`, where the
kit's agent records what it does. Each check raises AssertionError if the executor breaks the contract.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.execute.local import LocalExecutor
from holdfast.execute.open_site import open_site
from holdfast.model.codes import RunNote
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.spec import Spec
from holdfast.model.trial import Trial
from holdfast.plan import build_plan
from holdfast.protocols.executor import Executor
from holdfast.spec import load
from holdfast.testing import ContractChecks

OpenExecutor = Callable[[Spec], AbstractAsyncContextManager[Executor]]
_WAITS_S = 0.6
"""Duration of a trial that is closed in the middle."""
_AHEAD = 1_000
"""Trials that an executor may take ahead per slot, at most: a batch or two."""
_AGENT = """
import os, time

def mark(word):
    with open(MARKS, "a") as file:
        file.write(word + "\\n")

def look(word):
    return "found " + word

def ask(prompt):
    mark("began " + prompt)
    word = prompt.split()[0]
    if word == "waits":
        time.sleep(WAITS)
    if word == "crashes":
        os._exit(9)
    try:
        found = "x" * 1_000_000 + "\\0ä\\U0001f41a" if word == "large" else look(prompt)
    except Exception as failure:
        found = f"not found: {failure}"
    mark("ended " + prompt)
    return os.environ["REGION"] + " " + found
"""
_SPEC = """
agent:
  {type: python, endpoint: "kit_agent:ask", tools: ["kit_agent:look"], env: {REGION: "{{ params.region }}"}}
golden_prompts: PROMPTS
parallelism: {matrix: {region: [eu, us]}}
contract:
  name: executor
  invariants: [{id: answers, type: completes}]
  chaos_matrix:
    - {name: calm}
    - {name: down, tool_faults: [{tool: look, mode: error, probability: 0.5}]}
"""


CHECKS: ContractChecks[OpenExecutor] = ContractChecks()
"""All of them, by name."""


async def check_executor(open_executor: OpenExecutor, folder: Path) -> dict[str, str]:
    """Run all checks and return the failures, by name. Each has its own folder below `folder`."""
    return await CHECKS.run(open_executor, folder)


@CHECKS.add
async def check_each_trial_once(open_executor: OpenExecutor, folder: Path) -> None:
    """Each trial is given once with its own observation; without trials nothing comes, and more can follow later."""
    spec = _write_spec(folder, "one", "two", "three", "four")
    trials = build_plan(spec).trials
    async with open_executor(spec) as executor:
        assert executor.concurrency >= 1
        assert all(isinstance(note, RunNote) for note in executor.notes)
        assert await _execute_all(executor, ()) == []
        for part in (trials[:5], trials[5:]):
            ended = await _execute_all(executor, part)
            assert Counter(trial.id for trial, _ in ended) == Counter(trial.id for trial in part)
            assert all(observation.trial == trial.id for trial, observation in ended), "an observation of another trial"


@CHECKS.add
async def check_same_as_local(open_executor: OpenExecutor, folder: Path) -> None:
    """The same answers, endings and faults as in this process, whatever the agent does."""
    spec = _write_spec(folder, "one", "two", "large", "crashes", "Ünïcode 🐚")
    trials = build_plan(spec).trials
    async with _open_local(spec) as local:
        here = _build_facts(await _execute_all(local, trials))
    async with open_executor(spec) as executor:
        there = _build_facts(await _execute_all(executor, trials))
    assert there == here
    assert any(facts[1] for facts in here.values()), "no fault was met"


@CHECKS.add
async def check_lazy_feed(open_executor: OpenExecutor, folder: Path) -> None:
    """A feed may be endless, and a caller that stops has not requested all of it."""
    spec = _write_spec(folder, "one")
    first, drawn = build_plan(spec).trials[0], 0

    def repeat_forever() -> Iterator[Trial]:
        nonlocal drawn
        for drawn in count(1):
            yield replace(first, id=f"{drawn:012x}")

    async with open_executor(spec) as executor:
        most = _AHEAD * executor.concurrency
        async with aclosing(executor.execute(repeat_forever())) as ended:
            await anext(ended)
            await anext(ended)
        assert drawn <= most, f"{drawn} trials were started, but two were requested"


@CHECKS.add
async def check_stored_is_returned(open_executor: OpenExecutor, folder: Path) -> None:
    """`store` is called once per trial before it is given, and its return value is given."""
    spec = _write_spec(folder, "one", "two", "three")
    stored: list[str] = []

    def store(trial: Trial, observation: Observation) -> Observation:
        assert observation.trial == trial.id
        stored.append(trial.id)
        return replace(observation, error="as stored")

    async with open_executor(spec) as executor:
        async for trial, observation in executor.execute(build_plan(spec).trials, store=store):
            assert trial.id in stored, "given before it was stored"
            assert observation.error == "as stored", "not what was stored"
    assert Counter(stored) == Counter(trial.id for trial in build_plan(spec).trials)


@CHECKS.add
async def check_failing_store(open_executor: OpenExecutor, folder: Path) -> None:
    """A full disk: the error is raised unchanged, and no agent continues."""
    spec = _write_spec(folder, *(f"{'quick' if n == 0 else 'waits'} {n}" for n in range(6)))

    def store(trial: Trial, observation: Observation) -> Observation:
        raise OSError("no space left")

    async with open_executor(spec) as executor:
        raised = ""
        try:
            await _execute_all(executor, build_plan(spec).trials, store=store)
        except OSError as full:
            raised = str(full)
        assert raised == "no space left", f"what the store raised came out as {raised!r}"
        await _check_nothing_ends(folder)


@CHECKS.add
async def check_early_close(open_executor: OpenExecutor, folder: Path) -> None:
    """Closed while trials are running: none of their agents continues."""
    spec = _write_spec(folder, *(f"{'quick' if n == 0 else 'waits'} {n}" for n in range(6)))
    async with open_executor(spec) as executor:
        async with aclosing(executor.execute(build_plan(spec).trials)) as ended:
            await anext(ended)
        await _check_nothing_ends(folder)


@CHECKS.add
async def check_one_at_a_time(open_executor: OpenExecutor, folder: Path) -> None:
    """One at a time from the call on, however many slots there were."""
    spec = _write_spec(folder, *(f"one {n}" for n in range(4)))
    async with open_executor(spec) as executor:
        executor.use_one_slot()
        assert executor.concurrency == 1, executor.concurrency
        await _execute_all(executor, build_plan(spec).trials)
    words = [line.split()[0] for line in _read_marks(folder)]
    assert words == ["began", "ended"] * len(build_plan(spec).trials), "two trials overlapped"


@CHECKS.add
async def check_callbacks(open_executor: OpenExecutor, folder: Path) -> None:
    """`started` is called once for each trial, and `on_fault` for each met fault, before the trial is given."""
    spec = _write_spec(folder, "one", "two", "three", "four")
    begun: list[str] = []
    met: Counter[str] = Counter()

    def on_fault(trial: Trial, fault: FaultMet) -> None:
        met[trial.id] += 1

    listeners: dict[str, Any] = {"started": lambda trial: begun.append(trial.id), "on_fault": on_fault}
    async with open_executor(spec) as executor:
        async for trial, observation in executor.execute(build_plan(spec).trials, **listeners):
            assert trial.id in begun, "given before it was begun"
            assert met[trial.id] == len(observation.ledger), "its faults were not reported"
    assert Counter(begun) == Counter(trial.id for trial in build_plan(spec).trials)
    assert met.total(), "no fault was met"


@CHECKS.add
async def check_harness_error(open_executor: OpenExecutor, folder: Path) -> None:
    """One trial that cannot run does not affect the others."""
    spec = _write_spec(folder, "one", "two")
    good = build_plan(spec).trials
    bad = replace(good[0], id="bad000000000", params={"region": "nowhere"})
    async with open_executor(spec) as executor:
        ended = await _execute_all(executor, [*good[:3], bad, *good[3:]])
    assert [observation.trial for _, observation in ended if observation.error] == [bad.id]
    assert len(ended) == len(good) + 1


# -- helpers -----------------------------------------------------------------------------------------
def _write_spec(folder: Path, *prompts: str) -> Spec:
    """Return two scenarios and two regions of these prompts, for the kit's agent."""
    agent = _AGENT.replace("MARKS", repr(str(folder / "marks"))).replace("WAITS", str(_WAITS_S))
    (folder / "kit_agent.py").write_text(agent, encoding="utf-8")
    (folder / "holdfast.yaml").write_text(_SPEC.replace("PROMPTS", f"[{', '.join(prompts)}]"), encoding="utf-8")
    return load(folder / "holdfast.yaml", environ={})[0]


@asynccontextmanager
async def _open_local(spec: Spec) -> AsyncIterator[Executor]:
    executor = LocalExecutor(await open_site(spec, environ=os.environ))
    try:
        yield executor
    finally:
        await executor.close()


async def _execute_all(executor: Executor, trials: Iterable[Trial], **more: Any) -> list[tuple[Trial, Observation]]:
    return [one async for one in executor.execute(trials, **more)]


def _build_facts(ended: Iterable[tuple[Trial, Observation]]) -> dict[str, tuple[Any, ...]]:
    """Return the facts that do not depend on the clock."""

    def extract(observation: Observation) -> tuple[Any, ...]:
        turns = [(turn.text, turn.ending) for turn in observation.turns]
        return turns, [(met.target, met.mode, met.call) for met in observation.ledger], observation.error

    return {trial.id: extract(observation) for trial, observation in ended}


def _read_marks(folder: Path) -> list[str]:
    path = folder / "marks"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


async def _check_nothing_ends(folder: Path) -> None:
    """No waiting agent finishes from now on."""
    await asyncio.sleep(0.2)  # a killed process may take a moment
    before = _read_marks(folder)
    await asyncio.sleep(_WAITS_S + 0.3)
    assert _read_marks(folder) == before, "an agent continued after its execution was closed"
