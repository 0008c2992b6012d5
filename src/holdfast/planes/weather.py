"""Weather: the injections of one trial at work. It decides when each fires and keeps the ledger.

A plane brings a call here and says how to pass it on; the faults that match are wrapped around
it, the first in the list outermost. A firing is written to the ledger before the agent can feel
it: before a delay begins, before a failure is raised, before a changed reply is handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from threading import Lock
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast import plugins
from holdfast.errors import HarnessError
from holdfast.model.canary import canaries
from holdfast.model.observation import FaultMet
from holdfast.model.spec import NOT_ON_RESULTS, Injection, Scenario, Schedule
from holdfast.model.trial import Trial
from holdfast.planes.describe import TARGET_KEPT, arguments_digest, brief, describe, said, same
from holdfast.planes.firing import STEP, Firing, Record
from holdfast.planes.luck import Luck
from holdfast.planes.traced_call import CallTrace
from holdfast.planes.urls import is_origin, origin_matches, url_matches
from holdfast.protocols import Call, FaultContext, Forward, Reply, Sleep, Step, StepFault, WatchingFault

ANSWER = "(answer)"
"""The target of a simulated fault: whatever the injection names, it acts on the answer."""

ON_LISTINGS = ("tools_changed", "tool_poisoning")
"""MCP faults that are met where a server lists its tools (plane `mcp_list`); only the first is met by calls too."""

ON_CONNECTING = ("dns_failure", "tls_error")
"""Network faults that are met while a connection is made; its target is a URL without a path."""

TARGETS_KEPT = 10_000
"""Targets and arguments of one trial that are told apart: an agent that makes up URLs does not fill our memory."""
OTHERS = "(others)"
"""What calls to targets beyond that are counted under."""

LEDGER_LIMIT = 1000
"""Firings of one fault in one trial that are listed: enough to see what happened, bounded whatever the agent does."""
_NO_MORE = f"the first {LEDGER_LIMIT} firings stand here; any more are not listed"


class ActiveInjection:
    """An injection in one trial: the fault, and how often it was passed and fired."""

    def __init__(self, index: int, injection: Injection) -> None:
        self.index = index
        self.injection = injection
        self.fault = make_fault(injection)
        self.watches = isinstance(self.fault, WatchingFault)
        self._step: Step = self.fault.step if isinstance(self.fault, StepFault) else "connect"
        self.seen = 0
        self.fired = 0
        self.memory: dict[str, Any] = {}

    def at_step(self, plane: str) -> bool:
        """Whether calls on this plane are those of its step; only faults of services have steps."""
        return self.injection.plane != "service" or plane == step_plane(self._step)

    def due(self, nth: int) -> bool:
        """Whether the schedule lets it fire on the nth matching call, luck aside."""
        plan: Schedule = self.injection.schedule
        if plan.times is not None and self.fired >= plan.times:
            return False
        if plan.on_call is not None:
            return nth == plan.on_call
        after = plan.after_calls or 0
        return nth > after and (plan.every is None or (nth - after) % plan.every == 0)

    def watch(self, call: Call, reply: Reply) -> None:
        """Shows the fault a call it did not fire on, if it wants to see those."""
        if not self.watches:
            return
        try:
            self.fault.watch(call, reply, self.memory)
        except Exception as broken:
            raise HarnessError(f"fault {self.injection.mode} broke: {said(broken)}") from broken


class Weather:
    """All faults of one trial."""

    def __init__(self, trial: Trial, scenario: Scenario, record: Record) -> None:
        self.trial = trial
        self._record = record
        self._entries: dict[tuple[int, str], int] = {}
        self.calls: dict[str, int] = {}
        self.concurrent = False
        self.in_flight: list[None] = []
        """As many as there are calls under way: a list grows and shrinks safely in several threads without a lock."""
        self.lock = Lock()
        """Calls may come from several threads."""
        self.broke: Callable[[str], None] = _unheard
        """Told of failures that are ours, while the agent goes on."""
        self.watch: CallTrace | None = None
        """Told of the calls of the agent's own functions."""
        self._scenario = scenario
        self._luck = Luck(trial)
        self._placed: list[ActiveInjection] | None = None
        self._by_target: dict[tuple[str, str], list[ActiveInjection]] = {}
        self._occurrences: dict[str, int] = {}

    def record(self, met: FaultMet) -> None:
        """Enters a firing; an agent that never stops trying does not fill the ledger."""
        kind = (met.index, met.effect)
        self._entries[kind] = count = self._entries.get(kind, 0) + 1
        if count == LEDGER_LIMIT:
            met = replace(met, note=f"{met.note}; {_NO_MORE}" if met.note else _NO_MORE)
        if count <= LEDGER_LIMIT:
            self._record(replace(met, target=brief(met.target)) if len(met.target) > TARGET_KEPT else met)

    def facing(self, plane: str, target: str) -> list[ActiveInjection]:
        """The injections that a call to this target can meet, in list order."""
        key = (plane, brief(target))
        found = self._by_target.get(key)
        if found is None:
            with self.lock:  # one set of counters, however many threads ask first
                if self._placed is None:
                    self._placed = [
                        ActiveInjection(i, injection) for i, injection in enumerate(self._scenario.injections)
                    ]
                found = [p for p in self._placed if faces(p.injection, plane, target) and p.at_step(plane)]
                if len(self._by_target) < TARGETS_KEPT:
                    self._by_target[key] = found
        return found

    def count(self, plane: str, target: str) -> int:
        """Counts an attempt as it arrives; which one it is, from 1."""
        target = brief(target)
        key = target if plane in ("tool", "tool_result") else f"{plane}:{target}"
        with self.lock:
            if key not in self.calls and len(self.calls) >= TARGETS_KEPT:
                key = OTHERS
            n = self.calls[key] = self.calls.get(key, 0) + 1
        return n

    async def through(
        self,
        call: Call,
        forward: Forward,
        sleep: Sleep,
        *,
        untouched: Forward | None = None,
        retry: int = 0,
        modes: list[str] | None = None,
        sent: Callable[[], None] | None = None,
    ) -> Reply:
        """Passes the call on through every fault that is due; by `untouched` where none fires or watches.

        The modes of the faults that it meets are added to `modes`; `sent` hears that it goes to the other side.
        """
        facing = self.facing(call.plane, call.target)
        if not facing:
            if sent is not None:
                sent()
            return await (untouched or forward)(call)
        arrived = self._arrive(call, facing)
        passing = _Passing(forward, untouched or forward, sleep, retry, modes, sent)
        passing.seen = any(placed.watches for placed, _, _ in arrived)
        return await self._chain(arrived, 0, call, passing)

    def rewrite(self, text: str) -> str:
        """A turn as the agent is asked it, after the attacks on its input."""
        for placed in self.facing("context", "input"):
            placed.seen += 1
            key = f"input:{placed.seen}"
            if self._fires(placed, placed.seen, key):
                text = self._rewritten(placed, text, key)
        return text

    def _rewritten(self, placed: ActiveInjection, text: str, key: str) -> str:
        ctx = FaultContext(self._luck.rng(placed.index, key), _no_sleep, placed.fired, placed.memory)
        try:
            changed = placed.fault.rewrite(text, ctx)
        except Exception as broken:
            raise HarnessError(f"fault {placed.injection.mode} broke: {said(broken)}") from broken
        if not isinstance(changed, str):
            raise HarnessError(f"fault {placed.injection.mode} broke: it gave {type(changed).__name__}, not text")
        injection = placed.injection
        effect: Any = "no_effect" if changed == text else "met"
        told = describe(text), describe(changed)
        what = (placed.index, injection.plane, "input", injection.mode, placed.seen)
        planted = tuple(word for word in canaries(changed) if word not in text)
        self.record(FaultMet(*what, effect, *told, canaries=planted))
        return changed

    def _arrive(self, call: Call, facing: list[ActiveInjection]) -> list[tuple[ActiveInjection, int, str]]:
        """Counts the call at every injection whose `match` it meets; (injection, nth, luck's key) each."""
        numbered = call.plane == "llm" or call.plane.startswith("service")
        what = f"{brief(call.target)}:{call.n}" if numbered else self._what(call)
        arrived = []
        with self.lock:
            key = what if numbered else self._occurrence(what)
            for placed in facing:
                match = placed.injection.schedule.match
                if match is None or _matches(match, call.arguments):
                    placed.seen += 1
                    # A transaction that never comes to the fault's step counts all the same.
                    every = match is None and call.plane.startswith(STEP)
                    arrived.append((placed, call.n if every else placed.seen, key))
        return arrived

    def _what(self, call: Call) -> str:
        return f"{brief(call.target)}:{arguments_digest(call.arguments)}"

    def _occurrence(self, what: str) -> str:
        """Tools draw per (target, arguments, occurrence); the model and services per (target, n)."""
        occurrence = self._occurrences.get(what, 0) + 1
        if occurrence > 1 or len(self._occurrences) < TARGETS_KEPT:
            self._occurrences[what] = occurrence
        return f"{what}:{occurrence}"

    def _fires(self, placed: ActiveInjection, nth: int, key: str) -> bool:
        """Decides and counts in one step, so that `times` holds when calls overlap."""
        with self.lock:
            if not placed.due(nth):
                return False
            if not self._luck.chance(placed.index, key, placed.injection.schedule.probability):
                return False
            placed.fired += 1
            return True

    async def _chain(
        self, arrived: list[tuple[ActiveInjection, int, str]], at: int, call: Call, passing: _Passing
    ) -> Reply:
        if at == len(arrived):
            if passing.sent is not None:
                passing.sent()
            return await (passing.forward if passing.seen else passing.untouched)(call)
        placed, nth, key = arrived[at]

        async def onward(passed: Call) -> Reply:
            return await self._chain(arrived, at + 1, passed, passing)

        if not self._fires(placed, nth, key):
            reply = await onward(call)
            placed.watch(call, reply)
            return reply
        passing.seen = True
        firing = Firing(placed.index, placed.injection, call, passing.noting(self.record), passing.retry)
        rng = self._luck.rng(placed.index, key)
        return await firing.run(placed.fault, onward, passing.sleep, rng, placed.fired, placed.memory)


class _Passing:
    """One call on its way through the faults."""

    __slots__ = ("forward", "modes", "retry", "seen", "sent", "sleep", "untouched")

    def __init__(
        self,
        forward: Forward,
        untouched: Forward,
        sleep: Sleep,
        retry: int,
        modes: list[str] | None,
        sent: Callable[[], None] | None,
    ) -> None:
        self.forward = forward
        self.untouched = untouched
        self.sleep = sleep
        self.retry = retry
        self.seen = False
        """A fault fired or watches: it must be able to read the reply."""
        self.modes = modes
        self.sent = sent

    def noting(self, record: Record) -> Record:
        """The same record; what the call met is told to whoever made it, too."""
        modes = self.modes
        if modes is None:
            return record

        def noted(met: FaultMet) -> None:
            if met.effect == "met":
                modes.append(met.mode)
            record(met)

        return noted


def make_fault(injection: Injection) -> Any:
    """The fault of an injection, built from its settings."""
    plugin = plugins.find(f"faults.{injection.plane}", injection.mode)
    if plugin is None:
        raise HarnessError(f"there is no {injection.plane} fault called {injection.mode!r}")
    try:
        return msgspec.convert(injection.settings, plugin, strict=False)
    except (msgspec.ValidationError, TypeError, ValueError) as broken:
        raise HarnessError(f"fault {injection.mode} cannot be made of its settings: {broken}") from broken


def faces(injection: Injection, plane: str, target: str) -> bool:
    """Which injections wait where a call was seen. Faults of tools are met wherever a tool's call or result shows."""
    own, inner = injection.plane, injection.target != "input"
    if plane == "service" or plane.startswith(STEP):
        return own == "service" and injection.target == target
    if target == ANSWER:
        return own == plane or (plane == "tool" and own == "context" and inner)
    if plane == "context":  # `*` names every tool, not the input
        return own == "context" and not inner
    if plane == "http":
        return _faces_url(injection, target)
    if injection.match_url is not None:  # a tool behind a URL is met there and nowhere else
        return False
    if plane == "mcp_read":  # a resource or a prompt: text, and no call of a tool
        return own == "context" and inner and fnmatchcase(target, injection.target)
    if plane == "mcp_list":
        return own == "mcp" and injection.mode in ON_LISTINGS and fnmatchcase(target, injection.target)
    if own == "mcp" and injection.mode == "tool_poisoning":
        return False
    if plane == "tool_result" and injection.mode in NOT_ON_RESULTS:
        return False
    of_tools = plane in ("tool", "tool_result", "mcp") and (own == "tool" or (own == "context" and inner))
    return (of_tools or own == plane) and fnmatchcase(target, injection.target)


def step_plane(step: Step) -> str:
    """Where the calls of a step are seen."""
    return "service" if step == "connect" else STEP + step


def _faces_url(injection: Injection, target: str) -> bool:
    """A URL, or where a connection goes. Names and handshakes fail where a TLS connection is made, before any URL."""
    url = injection.target if injection.plane == "http" else injection.match_url
    if url is None:
        return False
    connecting = injection.plane == "http" and injection.mode in ON_CONNECTING
    if is_origin(target):
        return connecting and origin_matches(url, target)
    if connecting and (target.startswith("https:") or injection.mode == "tls_error"):
        return False
    return url_matches(url, target)


def _matches(match: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    return all(name in arguments and _fits(arguments[name], wanted) for name, wanted in match.items())


def _fits(value: Any, wanted: Any) -> bool:
    """Text is a glob; numbers compare as numbers; anything else is the same value."""
    if isinstance(wanted, str):
        return fnmatchcase(value if isinstance(value, str) else describe(value), wanted)
    if isinstance(wanted, (int, float)) and not isinstance(wanted, bool):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value == wanted
    return same(list(value) if isinstance(value, tuple) else value, wanted)


def _unheard(message: str) -> None:
    """Before a plane says who listens: the HarnessError itself is what is told."""


async def _no_sleep(ms: float) -> None:
    raise HarnessError("an attack on the input cannot wait")
