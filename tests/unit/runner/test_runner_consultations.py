"""Work beside the trials: bounded, never lost, and its failures told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.model.observation import Observation, Turn
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.world import Evidence
from holdfast.runner.consultations import Consultations, Waiting, consults_model
from holdfast.store.record import RunRecord, StoredAdvice, StoredAnswer
from holdfast.store.rundir import RunDir, list_record_files

JUDGE = Invariant("j", "llm_as_judge", {"model": "m", "criteria": "c"})
PLAIN = Invariant("p", "completes")


def test_so_much_is_done_at_a_time_and_all_of_it_in_the_end() -> None:
    async def go() -> tuple[int, list[int]]:
        waiting, under_way, most, done = Waiting(4), 0, 0, list[int]()

        async def work(n: int) -> None:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.001 * (n % 3))
            under_way -= 1
            done.append(n)

        for n in range(20):
            await waiting.add(work(n))
        await waiting.finish()
        return most, done

    most, done = asyncio.run(go())
    assert most <= 4
    assert sorted(done) == list(range(20))


def test_a_failure_is_raised_where_the_next_is_added_or_all_are_waited_for() -> None:
    async def fails() -> None:
        raise OSError("disk full")

    async def added() -> None:
        waiting = Waiting(1)
        await waiting.add(fails())

    async def finished() -> None:
        waiting = Waiting(9)
        await waiting.add(fails())
        await waiting.add(fails())
        await waiting.finish()

    for way in (added, finished):
        with pytest.raises(OSError, match="disk full"):
            asyncio.run(way())


def test_what_is_dropped_is_ended() -> None:
    async def go() -> bool:
        ended = False

        async def long() -> None:
            nonlocal ended
            try:
                await asyncio.sleep(60)
            finally:
                ended = True

        waiting = Waiting()
        await waiting.add(long())
        await asyncio.sleep(0)
        await waiting.cancel()
        await waiting.finish()
        return ended

    assert asyncio.run(go())


def test_only_rules_that_ask_a_model_are_consulted_and_only_on_what_was_seen(tmp_path: Path) -> None:
    assert consults_model(JUDGE)
    assert not consults_model(PLAIN)
    run = RunDir.create(tmp_path / "runs")
    consultations = Consultations(Spec("c.yaml", AgentSpec(), invariants=(JUDGE, PLAIN)), {}, run)
    assert consultations
    assert consultations.select_rules((PLAIN, JUDGE), Observation("t", (Turn("q", "a"),))) == [JUDGE]
    assert consultations.select_rules((PLAIN, JUDGE), Observation("t")) == [JUDGE]
    assert consultations.select_rules((PLAIN, JUDGE), Observation("t", error="no start")) == []
    assert not Consultations(Spec("c.yaml", AgentSpec(), invariants=(PLAIN,)), {}, run)


def test_what_was_said_is_found_again_and_sealed(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "runs")
    record = RunRecord(run, consults=True)
    for n, rule in enumerate(("a", "b", "a")):
        record.write_answer(StoredAnswer("t", rule, Evidence({"n": n})))
    sealed, said = record.seal()
    record.close()
    assert (sealed["evidence-0.jsonl"].lines, said) == (3, ())
    assert run.get_evidence_file() in list_record_files(run)
    heard = StoredAdvice(run)
    assert heard.get("t", "a") == Evidence({"n": 2}), "the last counts"
    assert heard.get("t", "b") == Evidence({"n": 1})
    assert heard.get("u", "a") is None
    bare = RunDir.create(tmp_path / "runs")
    RunRecord(bare).close()
    assert bare.get_evidence_file() not in list_record_files(bare)
    assert StoredAdvice(bare).get("t", "a") is None
