"""Faults in a process of its own: the ledger leaves it before the fault acts."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from execute_sites import fault, trial_of
from golden_words import Golden
from holdfast.agents.python import python_host
from holdfast.errors import SpecError
from holdfast.execute.open_site import open_site
from holdfast.execute.trial import run_trial
from holdfast.model.observation import Observation
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Spec, ToolRef

CODE = """
import asyncio, threading
def search(q="x"): return {"rows": [q]}
async def fetch(q="x"): return {"rows": [q]}
def chat(prompt): return "text of the model"

def ask(prompt):
    if prompt == "async":
        async def both(): return await asyncio.gather(fetch(1), fetch(2))
        return str(asyncio.run(both()))
    if prompt == "thread":
        thread = threading.Thread(target=search); thread.start(); thread.join()
        return "joined"
    if prompt == "many":
        found = []
        for n in range(20):
            try: search(n); found.append(".")
            except Exception: found.append("x")
        return "".join(found)
    if prompt == "chat": return chat(prompt)
    return str(search())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(python_host, "GRACE_S", 0.3)
    (tmp_path / "agent.py").write_text(CODE)
    return tmp_path


def run(folder: Path, injection: Any, *prompts: str, concurrency: int = 1, **agent: Any) -> list[Observation]:
    section = AgentSpec(
        type="python",
        endpoint="agent:ask",
        tools=(ToolRef("agent:search"), ToolRef("agent:fetch")),
        llm=(ToolRef("agent:chat"),),
        **agent,
    )
    scenarios = (Scenario("calm"), Scenario("s", (injection,)))

    async def use() -> list[Observation]:
        spec = Spec(path=str(folder / "spec.yaml"), agent=section, scenarios=scenarios, retries=0)
        site = await open_site(spec, environ=dict(os.environ), concurrency=concurrency)
        try:
            storm = scenarios[1]
            trials = [replace(trial_of(prompt, n=n), scenario=storm) for n, prompt in enumerate(prompts)]
            return list(await asyncio.gather(*(run_trial(site, trial) for trial in trials)))
        finally:
            await site.close()

    return asyncio.run(use())


def test_a_process_killed_in_the_middle_of_a_delay_has_its_entry(folder: Path) -> None:
    (seen,) = run(folder, fault("search", "slow", delay_ms=60_000), "sync", timeout_ms=500)
    assert seen.ending == "timeout"
    assert [(met.mode, met.effect, met.delayed) for met in seen.ledger] == [("slow", "met", True)]


def test_sync_async_threads_and_models_meet_their_faults(folder: Path) -> None:
    plain, both, thread = run(folder, fault("*", "empty"), "sync", "async", "thread")
    (model,) = run(folder, fault("*", "empty", plane="llm"), "chat")
    assert (plain.turns[0].text, plain.calls, plain.concurrent) == ("{'rows': []}", {"search": 1}, False)
    assert (both.turns[0].text, both.calls) == ("[{'rows': []}, {'rows': []}]", {"fetch": 2})
    assert (len(thread.met), thread.calls) == (1, {"search": 1})
    assert (model.turns[0].text, model.calls) == ("", {"llm:chat": 1})


def test_calls_that_overlap_are_marked(folder: Path) -> None:
    (seen,) = run(folder, fault("fetch", "slow", delay_ms=20), "async")
    assert seen.concurrent


def test_the_same_trial_meets_the_same_faults_at_any_concurrency_and_in_any_isolation(folder: Path) -> None:
    injection = fault("search", "error", probability=0.5)
    found = [
        [(seen.turns[0].text, [met.call for met in seen.ledger]) for seen in run(folder, injection, *prompts, **how)]
        for prompts, how in [
            (["many"], {}),
            (["many"] * 3, {"concurrency": 3}),
            (["many"], {"isolation": "worker"}),
            (["many"], {"isolation": "inline"}),
        ]
    ]
    first = found[0][0]
    assert all(one == first for group in found for one in group)
    assert 3 < first[0].count("x") < 17  # type: ignore[union-attr]


def test_a_target_the_agent_does_not_have_is_refused_before_it_is_asked(folder: Path, golden: Golden) -> None:
    with pytest.raises(SpecError) as caught:
        run(folder, fault("serch", "error"), "sync")
    golden(caught.value.problems[0].hint)
