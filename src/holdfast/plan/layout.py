"""The position of every trial of a matrix, and how to create a trial from its position."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar, overload

from msgspec.structs import replace

from holdfast.model.codec import encode_canonical, to_builtins
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.spec.secrecy import mask_keys


def encode_agent(agent: AgentSpec) -> bytes:
    """Return the agent section for an id: without its position, and without literal keys."""
    return encode_canonical(mask_keys(to_builtins(replace(agent, position=None)), "agent"))


def encode_head(kind: str, scenario: Scenario) -> bytes:
    """Return the opening of the array, up to the task."""
    return b"[%b,%b," % (encode_canonical(kind), encode_canonical(scenario.content))


def encode_middle(task: Task, params: Mapping[str, Any]) -> bytes:
    """Encode the task and the params, up to the replica."""
    return b"%b,%b," % (encode_canonical(task), encode_canonical(params))


def encode_tail(invariant: str, agent_json: bytes, seed: int) -> bytes:
    """Return the part after the replica."""
    return b",%b,%b,%d]" % (encode_canonical(invariant), agent_json, seed)


def encode_identity(
    kind: str,
    scenario: Scenario,
    task: Task,
    params: Mapping[str, Any],
    replica: int,
    invariant: str,
    agent_json: bytes,
    seed: int,
) -> bytes:
    """Return the canonical JSON array of what decides a trial: its id is the digest.

    `invariant` is `*` if the trial serves every rule of its scenario.
    """
    return b"%b%b%d%b" % (
        encode_head(kind, scenario),
        encode_middle(task, params),
        replica,
        encode_tail(invariant, agent_json, seed),
    )


T = TypeVar("T")


class TrialGroup(NamedTuple):
    """The tasks that one scenario asks for one rule, or for all rules that share their trials."""

    scenario: Scenario
    invariant: str
    tasks: tuple[Task, ...]


class TrialSpot(NamedTuple):
    """A trial's position: its group, then its task, params and replica."""

    scenario: Scenario
    invariant: str
    task: Task
    params: int
    replica: int


class _RuleTasks(NamedTuple):
    """The data that the groups of one rule share in every scenario."""

    invariant: str
    tasks: tuple[Task, ...]
    parts: tuple[bytes, ...]
    tail: bytes


class _Weather(NamedTuple):
    """The data that the groups of one scenario share."""

    scenario: Scenario
    head: bytes


class Layout:
    """The groups' trials in sequence; within a group: prompt, params, replica."""

    def __init__(self, spec: Spec, groups: Iterable[TrialGroup], params: Sequence[int]) -> None:
        self._seed = spec.seed
        self._replicas = spec.replicas
        self._numbers = tuple(params)
        self._params = tuple(spec.params[i] for i in params)
        self._parts = tuple(encode_canonical(p) + b"," for p in self._params)
        self._agent = encode_agent(spec.agent)
        self._starts = array("L", (0,))
        # 100,000 groups come from a few hundred scenarios and rules: each group is two references and a number.
        self._weathers: list[_Weather] = []
        self._asked: list[_RuleTasks] = []
        self._place_groups(groups)

    def _place_groups(self, groups: Iterable[TrialGroup]) -> None:
        weathers: dict[str, _Weather] = {}
        rule_tasks: dict[tuple[str, int], _RuleTasks] = {}
        each = len(self._params) * self._replicas
        for scenario, invariant, tasks in groups:
            if not tasks:
                continue
            if scenario.name not in weathers:
                weathers[scenario.name] = _Weather(scenario, encode_head("contract", scenario))
            # One rule may ask other tasks in another scenario. `rule_tasks` keeps them alive, so their ids are unique.
            key = (invariant, id(tasks))
            if key not in rule_tasks:
                parts = tuple(encode_canonical(task) + b"," for task in tasks)
                rule_tasks[key] = _RuleTasks(invariant, tasks, parts, encode_tail(invariant, self._agent, self._seed))
            self._weathers.append(weathers[scenario.name])
            self._asked.append(rule_tasks[key])
            self._starts.append(self._starts[-1] + len(tasks) * each)

    def __len__(self) -> int:
        return self._starts[-1]

    def build_trial(self, place: int) -> Trial:
        """Return the trial at a position, from 0."""
        weather, rule_tasks, task, params, replica = self._find(place)
        data = b"%b%b%b%d%b" % (weather.head, rule_tasks.parts[task], self._parts[params], replica, rule_tasks.tail)
        return Trial(
            blake2b(data, digest_size=6).hexdigest(),
            "contract",
            weather.scenario,
            rule_tasks.tasks[task],
            replica,
            self._params[params],
            rule_tasks.invariant,
            self._seed,
        )

    def find_spot(self, place: int) -> TrialSpot:
        """Return the parts of the trial at a position, without its id."""
        weather, rule_tasks, task, params, replica = self._find(place)
        return TrialSpot(weather.scenario, rule_tasks.invariant, rule_tasks.tasks[task], self._numbers[params], replica)

    def _find(self, place: int) -> tuple[_Weather, _RuleTasks, int, int, int]:
        """Return the parts of the trial at a position: its group's, and its task, params and replica as numbers."""
        group = bisect_right(self._starts, place) - 1
        rest, replica = divmod(place - self._starts[group], self._replicas)
        task, params = divmod(rest, len(self._params))
        return self._weathers[group], self._asked[group], task, params, replica


class LazySequence(Sequence[T], Generic[T]):
    """A sequence whose items are created on demand: a plan of 100,000 trials stores none of them.

    It contains the items at `positions`, each created by `at`; a slice is also lazy.
    """

    __slots__ = ("_at", "_positions")

    def __init__(self, at: Callable[[int], T], positions: Sequence[int]) -> None:
        self._at = at
        self._positions = positions

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> LazySequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | LazySequence[T]:
        if isinstance(index, slice):
            return LazySequence(self._at, self._positions[index])
        return self._at(self._positions[index])

    def __iter__(self) -> Iterator[T]:
        return map(self._at, self._positions)
