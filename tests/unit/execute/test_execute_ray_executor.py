"""How trials are handed out and taken back, with workers that die when told to; real ones: tests/integration."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import pytest

from golden_words import Golden
from holdfast.errors import HarnessError, UserError
from holdfast.execute.ray_executor import AHEAD, BATCH_LIMIT, TRIES, RayExecutor, Workers
from holdfast.execute.ray_pool import WorkerNeeds
from holdfast.execute.ray_worker import WorkerReport, encode_observation, read_trial
from holdfast.model.codes import RunNote
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial


class RayError(Exception):
    pass


class RayActorError(RayError):
    pass


class NodeDiedError(RayError):
    pass


class ObjectLostError(RayError):
    pass


class OutOfMemoryError(RayError):
    pass


class ObjectStoreFullError(RayError):
    pass


class Ref:
    def __init__(self, result: Any) -> None:
        self._result = result

    def future(self) -> Future[Any]:
        found: Future[Any] = Future()
        if isinstance(self._result, Exception):
            found.set_exception(self._result)
        else:
            found.set_result(self._result)
        return found


class Method:
    def __init__(self, call: Any) -> None:
        self.remote = lambda *args: Ref(call(*args))


class Actor:
    """Runs what it is given, and dies of trials that are deadly."""

    def __init__(self, cluster: FakeCluster, node: str) -> None:
        self._cluster = cluster
        self._node = node
        self._dead = False
        self.open, self.run, self.close = Method(self._open), Method(self._run), Method(lambda: None)

    def _open(self, *order: Any) -> WorkerReport:
        self._cluster.opened += 1
        refused = self._cluster.refused.get(self._node, "")
        return WorkerReport(self._node, self._node, refused=refused, slots=1, notes=(RunNote("agent-start", "a note"),))

    def _run(self, lines: list[bytes]) -> Any:
        trials = list(map(read_trial, lines))
        if self._cluster.full:
            raise ObjectStoreFullError("The object store is full.")
        self._dead = self._dead or any(trial.id in self._cluster.deadly for trial in trials)
        if self._dead:
            return RayActorError("The actor died.")
        self._cluster.ran += [trial.id for trial in trials]
        self._cluster.largest = max(self._cluster.largest, len(trials))
        if len(trials) > self._cluster.fits:
            return ObjectStoreFullError("The object store is full.")
        return [encode_observation(Observation(trial.id, (Turn("?", self._cluster.says),))) for trial in trials]


class FakeCluster:
    """As much of Ray as the executor uses."""

    exceptions = SimpleNamespace(
        RayError=RayError,
        RayActorError=RayActorError,
        NodeDiedError=NodeDiedError,
        ObjectLostError=ObjectLostError,
        OutOfMemoryError=OutOfMemoryError,
        ObjectStoreFullError=ObjectStoreFullError,
    )

    def __init__(
        self, deadly: tuple[str, ...] = (), refused: dict[str, str] | None = None, machines: tuple[str, ...] = ("here",)
    ) -> None:
        self.deadly, self.refused, self.machines = deadly, refused or {}, machines
        self.opened = self.largest = 0
        self.fits = BATCH_LIMIT
        """Trials of which the observations fit into its store."""
        self.full = False
        self.says = "yes"
        self.ran: list[str] = []
        self.killed: list[Actor] = []

    def remote(self, made: type) -> Any:
        return SimpleNamespace(options=lambda **asked: SimpleNamespace(remote=lambda: self._placed(asked)))

    def _placed(self, asked: dict[str, Any]) -> Actor:
        barred = asked.get("label_selector", {}).get("ray.io/node-id", "!in()")[4:-1].split(",")
        return Actor(self, next(name for name in self.machines if name not in barred))

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"Alive": True, "NodeID": name, "Resources": {"CPU": 2.0, "memory": 1 << 30, name: 1.0}}
            for name in self.machines
        ]

    def kill(self, actor: Actor) -> None:
        self.killed.append(actor)

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0, "node:here": 1.0}


ORDER: Any = SimpleNamespace(version="1", python="3")


def trials(count: int) -> list[Trial]:
    return [Trial(f"{n:04x}", "contract", Scenario("calm"), Task(("?",))) for n in range(count)]


async def executed(cluster: FakeCluster, count: int, **more: Any) -> list[tuple[Trial, Observation]]:
    executor = RayExecutor(cluster, ORDER, WorkerNeeds(), **more)
    await executor.open(2)
    try:
        return [one async for one in executor.execute(trials(count))]
    finally:
        await executor.close()


def test_every_trial_is_given_once() -> None:
    cluster = FakeCluster()
    ended = asyncio.run(executed(cluster, 500))
    assert sorted(trial.id for trial, _ in ended) == [trial.id for trial in trials(500)]
    assert sorted(cluster.ran) == [trial.id for trial in trials(500)]


@pytest.mark.parametrize("count", [1, 14, 100, 600])
def test_one_deadly_trial_is_the_only_error(count: int, golden: Golden) -> None:
    deadly = f"{min(13, count - 1):04x}"
    cluster = FakeCluster((deadly,))
    said: list[Workers] = []
    ended = asyncio.run(executed(cluster, count, listen=said.append))
    assert sorted(trial.id for trial, _ in ended) == [trial.id for trial in trials(count)]
    broken = [seen for _, seen in ended if seen.error]
    assert [seen.trial for seen in broken] == [deadly]
    golden(broken[0].error)
    assert (said[-1].lost, said[-1].in_flight) == (TRIES, 0)
    assert cluster.opened >= 1 + TRIES  # the last may be closed before it has opened


def test_what_has_come_is_stored_before_the_first_of_it_is_given() -> None:
    async def go() -> tuple[list[str], int]:
        stored: list[str] = []

        def store(trial: Trial, seen: Observation) -> Observation:
            stored.append(trial.id)
            return seen

        executor = RayExecutor(FakeCluster(), ORDER, WorkerNeeds())
        await executor.open(1)
        given = 0
        async with aclosing(executor.execute(trials(2_000), store=store)) as ended:
            async for _ in ended:
                given += 1
                if given == 50:
                    break
        return stored, given

    stored, given = asyncio.run(go())
    assert len(stored) == len(set(stored)) > given


def test_one_at_a_time_means_one() -> None:
    async def go() -> int:
        executor = RayExecutor(FakeCluster(), ORDER, WorkerNeeds())
        await executor.open(2)
        assert executor.concurrency == 2
        executor.use_one_slot()
        begun = most = 0

        def started(trial: Trial) -> None:
            nonlocal begun, most
            begun += 1
            most = max(most, begun)

        async for _ in executor.execute(trials(9), started=started):
            begun -= 1
        return most

    assert asyncio.run(go()) == 1


def test_a_worker_that_is_refused_says_why_and_secrets_are_masked() -> None:
    with pytest.raises(UserError) as raised:
        asyncio.run(
            executed(
                FakeCluster(refused={"here": "it lacks postgres, key s3cr3t"}),
                1,
                mask=lambda text: text.replace("s3cr3t", "***"),
            )
        )
    assert (raised.value.code, "key ***" in str(raised.value)) == ("worker-unusable", True)


def test_what_a_worker_takes_of_its_machine(golden: Golden) -> None:
    needs = WorkerNeeds(2.0, 1 << 30, 1.0, ("docker",))
    assert needs.to_ray_options() == {
        "num_cpus": 2.0,
        "memory": 1 << 30,
        "num_gpus": 1.0,
        "resources": {"docker": 0.001},
    }
    golden(needs.describe())
    whole = {"CPU": 2.0, "memory": float(1 << 30), "GPU": 1.0, "docker": 1.0}
    assert needs.can_fit(whole)
    assert not any(needs.can_fit({**whole, name: 0.0}) for name in whole)


def test_a_machine_that_cannot_is_named_and_its_share_is_run_on_another(golden: Golden) -> None:
    cluster = FakeCluster(refused={"bare": "it lacks bubblewrap"}, machines=("bare", "whole"))

    async def go() -> tuple[str, ...]:
        executor = RayExecutor(cluster, ORDER, WorkerNeeds())
        await executor.open(2)
        assert len([one async for one in executor.execute(trials(5))]) == 5
        return tuple(map(str, executor.notes))

    notes = asyncio.run(go())
    golden(notes)


def test_where_no_other_machine_has_the_label_nobody_waits_for_one() -> None:
    cluster = FakeCluster(refused={"bare": "it lacks bubblewrap"}, machines=("bare", "whole"))

    async def go() -> None:
        await RayExecutor(cluster, ORDER, WorkerNeeds(labels=("bare",))).open(1)

    with pytest.raises(UserError) as raised:
        asyncio.run(asyncio.wait_for(go(), 5))
    assert raised.value.code == "worker-unusable"
    assert cluster.opened == 1


def test_replies_that_do_not_fit_together_are_asked_for_one_by_one() -> None:
    cluster = FakeCluster()
    cluster.fits = 1
    said: list[Workers] = []
    ended = asyncio.run(executed(cluster, 300, listen=said.append))
    assert sorted(trial.id for trial, _ in ended) == [trial.id for trial in trials(300)]
    assert [seen.error for _, seen in ended if seen.error] == []
    assert (said[-1].lost, said[-1].repeated > 0) == (0, True)


def test_a_reply_that_never_fits_is_our_error_with_the_reason() -> None:
    cluster = FakeCluster()
    cluster.fits = 0
    ended = asyncio.run(executed(cluster, 2))
    assert {seen.error_code for _, seen in ended} == {"worker-unusable"}
    assert all("object store" in seen.error for _, seen in ended)
    assert cluster.ran.count("0000") == TRIES


def test_a_cluster_that_takes_no_work_ends_the_run_with_what_to_do() -> None:
    cluster = FakeCluster()
    cluster.full = True
    with pytest.raises(HarnessError) as raised:
        asyncio.run(executed(cluster, 2))
    assert raised.value.code == "cluster-full"


@pytest.mark.slow
@pytest.mark.parametrize(("says", "most"), [("yes", BATCH_LIMIT), ("x" * (4 << 20), 8)])
def test_workers_wait_for_a_driver_that_is_slower(says: str, most: int) -> None:
    """What lies between them is bounded in trials, and where they are large in bytes."""
    cluster = FakeCluster()
    cluster.says = says

    async def go() -> int:
        executor = RayExecutor(cluster, ORDER, WorkerNeeds())
        await executor.open(2)
        given = ahead = 0
        async with aclosing(executor.execute(trials(2_000))) as ended:
            async for _ in ended:
                given += 1
                ahead = max(ahead, len(cluster.ran) - given)
                if given > 60 and says != "yes":
                    break
                await asyncio.sleep(0)
        return ahead

    assert asyncio.run(go()) <= AHEAD * 2 * most
    assert cluster.largest <= most
