"""worker: one process per slot, kept between trials, replaced when it dies."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_python_site import observe, spec_of, trial_of, with_site
from holdfast.agents.python import python_host
from holdfast.execute.site import Site
from holdfast.execute.trial import run_trial
from holdfast.model.observation import Observation

CODE = """
import os, time
calls = 0
def ask(prompt):
    global calls
    calls += 1
    print("printed", calls)
    if prompt == "die": os._exit(3)
    if prompt == "hang": time.sleep(60)
    if prompt == "close": os.closerange(3, 5000)
    if prompt == "raise": raise ValueError
    if prompt == "slow": time.sleep(0.3)
    return f"{calls} {os.environ.get('PARAM_ONE', '-')}"
"""


def test_state_is_kept_between_the_trials_of_a_slot(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, CODE, isolation="worker")
    seen = observe(spec, trial_of("a"), trial_of("raise"), trial_of("b"))
    assert [one.turns[0].text for one in seen] == ["1 -", None, "3 -"]
    assert [one.output for one in seen] == ["printed 1\n", "printed 2\n", "printed 3\n"]


def test_a_parameter_of_one_trial_is_gone_in_the_next(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, CODE, isolation="worker")
    seen = observe(spec, trial_of(params={"one": 1}), trial_of())
    assert [one.turns[0].text for one in seen] == ["1 1", "2 -"]


@pytest.mark.parametrize(("way", "ending"), [("die", "crashed"), ("hang", "timeout"), ("close", "crashed")])
def test_a_worker_that_dies_or_hangs_is_replaced(
    tmp_path: Path, way: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_host, "GRACE_S", 0.3)
    spec = spec_of(tmp_path, CODE, isolation="worker", timeout_ms=700)
    seen = observe(spec, trial_of("a"), trial_of(way), trial_of("b"))
    assert [one.ending for one in seen] == ["answered", ending, "answered"]
    assert [one.error for one in seen] == ["", "", ""]
    assert seen[2].turns[0].text == "1 -"


def test_two_slots_have_a_worker_each(tmp_path: Path) -> None:
    async def use(site: Site) -> list[Observation]:
        return await asyncio.gather(*(run_trial(site, trial_of("slow", n=n)) for n in range(2)))

    seen = asyncio.run(with_site(spec_of(tmp_path, CODE, isolation="worker"), use, concurrency=2))
    assert [one.turns[0].text for one in seen] == ["1 -", "1 -"]


def test_an_interrupted_worker_is_not_used_again(tmp_path: Path) -> None:
    async def use(site: Site) -> Observation:
        task = asyncio.create_task(run_trial(site, trial_of("hang")))
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return await run_trial(site, trial_of("a"))

    found = asyncio.run(with_site(spec_of(tmp_path, CODE, isolation="worker"), use))
    assert found.turns[0].text == "1 -"
