"""An ActiveInjection: one injection in one trial, the calls that it can act on, its schedule and its random draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase
from hashlib import blake2b
from random import Random
from typing import Any

import msgspec
from msgspec import UNSET

from holdfast import plugins
from holdfast.errors import HarnessError, format_error_place
from holdfast.model.codec import encode_canonical
from holdfast.model.scenario import INPUT, Injection, Schedule
from holdfast.model.trial import Trial
from holdfast.planes.describe import describe, format_exception, is_same_value
from holdfast.planes.urls import is_origin, matches_origin, matches_url
from holdfast.protocols.fault import (
    Call,
    FaultContext,
    FaultTraits,
    Forward,
    Reply,
    Step,
    TaskFault,
    WatchingFault,
    read_traits,
)

STEP = "service."
"""Prefix of the planes for a service's steps; in the ledger they are all the plane `service`."""
ANSWER = "(answer)"
"""The target of a simulated fault, which acts on the answer whatever the injection names."""
_REJECTED_LISTED = 3
"""Number of calls that did not match whose arguments are reported."""


class ActiveInjection:
    """An injection in one trial: the fault, and how often it was offered a call, fired and was met."""

    def __init__(self, index: int, injection: Injection) -> None:
        self.index = index
        self.injection = injection
        self.fault = make_fault(injection)
        self.watches = isinstance(self.fault, WatchingFault)
        self.traits = read_traits(self.fault)
        if injection.plane == "context" and injection.target == INPUT:
            self.fault = TaskAttack(self.fault)
        self.offered = 0
        self.writes = 0
        """Of the calls that it was offered: those that change something."""
        self.fired = 0
        self.used_firings = 0
        """Firings that count for `times`: those that were met or may still be."""
        self.memory: dict[str, Any] = {}
        self._rejected: dict[str, None] = {}

    def matches(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether `match` accepts a call; keep the arguments of the first calls that it rejects."""
        match = self.injection.schedule.match or {}
        if all(name in arguments and _matches_value(arguments[name], pattern) for name, pattern in match.items()):
            return True
        if len(self._rejected) < _REJECTED_LISTED:
            values = (f"{name}: {describe(arguments[name])}" if name in arguments else f"no {name}" for name in match)
            self._rejected[", ".join(values)] = None
        return False

    @property
    def unmatched(self) -> str:
        """The arguments of the calls if none of them matched; otherwise empty."""
        return "" if self.offered else "; ".join(self._rejected)

    def can_act_on(self, plane: str, target: str) -> bool:
        """Return whether it can act on a call on this plane to this target."""
        if self.injection.plane == "service" and plane != name_step_plane(self.traits.step):
            return False  # the call belongs to another step
        return _can_act_on(self.injection, self.traits, plane, target)

    def is_due(self, nth: int) -> bool:
        """Return whether the schedule lets it fire on the nth matching call, before the random draw."""
        plan: Schedule = self.injection.schedule
        # `times` counts what was met or may still be: a firing that turns out to have had no effect is returned
        # (`Weather.return_firing`), because the user asked for that many disturbances, not for that many attempts.
        if plan.times is not None and self.used_firings >= plan.times:
            return False
        if plan.after_event is not None:
            return nth == plan.after_event["write"]
        if plan.on_call is not None:
            return nth == plan.on_call
        after = plan.after_calls or 0
        return nth > after and (plan.every is None or (nth - after) % plan.every == 0)

    def watch(self, call: Call, reply: Reply) -> None:
        """Pass the fault a call that it did not fire on, if it watches such calls."""
        if not self.watches:
            return
        try:
            self.fault.watch(call, reply, self.memory)
        except Exception as broken:
            raise HarnessError(
                f"fault {self.injection.mode} failed: {format_exception(broken)}{format_error_place(broken)}",
                code="fault-broken",
            ) from broken


class TaskAttack:
    """Applies an attack on the agent's input as a fault on a call, whose reply is the prompt."""

    def __init__(self, attack: TaskFault) -> None:
        self._attack = attack

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        prompt = self._attack.rewrite((await forward(call)).value, ctx)
        if not isinstance(prompt, str):
            raise TypeError(f"rewrite returned {type(prompt).__name__}, not text")
        return Reply(prompt)


def make_fault(injection: Injection) -> Any:
    """Return the fault of an injection, made from its settings."""
    plugin = plugins.find(f"faults.{injection.plane}", injection.mode)
    if plugin is None:
        raise HarnessError(f"there is no {injection.plane} fault called {injection.mode!r}", code="plugin-broken")
    try:
        return msgspec.convert(injection.settings, plugin, strict=False)
    except (msgspec.ValidationError, TypeError, ValueError) as broken:
        raise HarnessError(
            f"fault {injection.mode} cannot be made from its settings: {broken}", code="plugin-broken"
        ) from broken


def can_act_on(injection: Injection, plane: str, target: str) -> bool:
    """Return whether an injection can act on calls on this plane to this target."""
    return _can_act_on(injection, plugins.get_fault_traits(injection.plane, injection.mode), plane, target)


def _can_act_on(injection: Injection, traits: FaultTraits, plane: str, target: str) -> bool:
    """Return whether the injection can act there; faults of tools act wherever a tool's call or result is observed."""
    # The order matters: steps of services and listings have rules of their own; what is left is a call, or the result
    # of one, where faults of tools and of the context meet the planes on which tools are observed.
    own, inner = injection.plane, injection.target != "input"
    if plane == "service" or plane.startswith(STEP):
        return own == "service" and injection.target == target
    if target == ANSWER:
        return own == plane or (plane == "tool" and own == "context" and inner)
    if plane == "context":  # `*` matches every tool, but not the input
        return own == "context" and not inner
    if plane == "http":
        return _can_act_on_url(injection, traits.step, target)
    if injection.match_url is not None:  # faults act on a tool behind a URL only at that URL
        return False
    if plane == "mcp_read":  # a resource or a prompt is text, not the result of a tool
        return own == "context" and injection.target == "*"
    if plane == "mcp_list":
        return own == "mcp" and traits.on_listings and fnmatchcase(target, injection.target)
    if not traits.on_calls or (plane == "tool_result" and not traits.on_results):
        return False
    of_tools = plane in ("tool", "tool_result", "mcp") and (own == "tool" or (own == "context" and inner))
    return (of_tools or own == plane) and fnmatchcase(target, injection.target)


def name_step_plane(step: Step) -> str:
    """Return the plane on which the calls of a step are observed."""
    return "service" if step == "connect" else STEP + step


def _can_act_on_url(injection: Injection, step: Step, target: str) -> bool:
    """Return whether an injection can act on a URL, or on the target of a connection.

    Names and handshakes fail when a TLS connection is made, before any URL is known.
    """
    url = injection.target if injection.plane == "http" else injection.match_url
    if url is None:
        return False
    # A tunnel is known only by its origin, so faults of names and handshakes must decide there. For https they must not
    # act again on the requests inside; in plain http there is no handshake, and names are looked up per request.
    connecting = injection.plane == "http" and step in ("name", "tls")
    if is_origin(target):
        return connecting and matches_origin(url, target)
    if connecting and (target.startswith("https:") or step == "tls"):
        return False
    return matches_url(url, target)


def _matches_value(value: Any, pattern: Any) -> bool:
    """Return whether a value matches: text is a glob, numbers compare as numbers, anything else must be equal.

    A list matches if one member does; a list of wanted values matches if each is matched by a member.
    """
    if isinstance(value, list | tuple):
        if not isinstance(pattern, list):
            return any(_matches_value(member, pattern) for member in value)
        return bool(pattern or not value) and all(_matches_value(value, part) for part in pattern)
    if isinstance(pattern, str):
        return fnmatchcase(value if isinstance(value, str) else describe(value), pattern)
    if isinstance(pattern, (int, float)) and not isinstance(pattern, bool):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value == pattern
    return is_same_value(value, pattern)


class RandomDraws:
    """The random draws of one trial.

    They do not depend on the rule, the scenario's name or a fault's position in the list. Every rule gets the same
    weather, and adding or removing a fault does not change the draws of the others.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._roots: list[bytes] | None = None

    def draw_bits(self, fault: int, key: str) -> int:
        """Return 64 random bits for the fault at that index and the call with that key."""
        # A draw depends on the trial, the content of the fault and the call, never on its position: adding a fault to a
        # scenario must not change what the others do, or no failure could be narrowed down to one of them.
        if self._roots is None:  # most trials are calm or deterministic, and never draw
            self._roots = self._build_roots()
        return int.from_bytes(blake2b(self._roots[fault] + key.encode(), digest_size=8).digest(), "big")

    def _build_roots(self) -> list[bytes]:
        """Build the root of each fault's draws: the trial's seed, the fault, and its number among equal faults."""
        seed, equal = compute_trial_seed(self._trial), Counter[bytes]()
        roots = []
        for injection in self._trial.scenario.injections:
            content = encode_canonical(injection.content)
            roots.append(b"%d:%b:%d:" % (seed, content, equal[content]))
            equal[content] += 1
        return roots

    def draw_chance(self, fault: int, key: str, probability: float) -> bool:
        """Return True with the given probability."""
        return self.draw_bits(fault, key) < probability * 2.0**64

    def create_rng(self, fault: int, key: str) -> Random:
        """Return a random generator for one firing."""
        return Random(self.draw_bits(fault, f"rng:{key}"))


def compute_trial_seed(trial: Trial) -> int:
    """Return the base of all draws of a trial; a trial that became a session keeps its own."""
    recording = trial.task.recording
    if recording is not UNSET and recording.seed is not None:
        return recording.seed
    replica = 0 if trial.scenario.steady else trial.replica
    content = encode_canonical([trial.seed, trial.task.digest, trial.params, replica])
    return int.from_bytes(blake2b(content, digest_size=6).digest(), "big")
