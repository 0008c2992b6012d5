"""The world faults of one trial: each starts once, at its time or event, and is written to the ledger."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from msgspec.structs import replace

from holdfast.errors import HarnessError, format_error_place
from holdfast.model.observation import FaultMet
from holdfast.model.scenario import Injection
from holdfast.planes.describe import format_exception
from holdfast.planes.injection.active_injection import RandomDraws, make_fault
from holdfast.protocols.fault import FaultContext
from holdfast.protocols.sandbox import FileChange
from holdfast.protocols.trial import TrialContext
from holdfast.protocols.world import World
from holdfast.protocols.world_fault import (
    AFTER_WRITE,
    HIT_TEST,
    RAN,
    RESTART,
    TOUCHED,
    HealingFault,
    ProvableFault,
    TouchedPath,
)

POLL_S = 0.05
"""Seconds between two looks at the workspace while a fault waits for a file."""
HEAL_S = 60.0


@dataclass
class _PlacedFault:
    index: int
    injection: Injection
    fault: Any
    ctx: FaultContext
    has_begun: bool = False
    unproven: FaultMet | None = None
    """The ledger entry, while it is unknown whether the agent hit the fault."""

    @property
    def after_ms(self) -> int:
        return int(self.injection.settings.get("after_ms", 0))

    @property
    def on_event(self) -> str | None:
        return self.injection.settings.get("on_event")

    @property
    def after_write(self) -> int | None:
        """The write of the agent that it comes after, from 1."""
        return (self.injection.settings.get("after_event") or {}).get("write")

    @property
    def waits(self) -> bool:
        """Whether something that the agent does starts it."""
        return self.on_event is not None or self.after_write is not None


class Disturbances:
    """Runs the world faults of a scenario and keeps their own effects out of the agent's audit."""

    def __init__(self, context: TrialContext) -> None:
        self._context = context
        draws = RandomDraws(context.trial)
        self._placed = [
            _PlacedFault(
                index,
                one,
                make_fault(one),
                FaultContext(
                    draws.create_rng(index, "world"),
                    _sleep,
                    1,
                    {AFTER_WRITE: True} if "after_event" in one.settings else {},
                ),
            )
            for index, one in enumerate(context.trial.scenario.injections)
            if one.plane == "world"
        ]
        self._started: list[_PlacedFault] = []
        self._acting: set[asyncio.Task[None] | None] = set()
        """Faults that act right now: their changes are not recorded yet."""
        self._world: World | None = None
        self._writes = 0
        """Calls and statements of the agent that changed something."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._due: set[asyncio.Task[None]] = set()
        """Faults that something the agent did has started, until they have acted."""

    @asynccontextmanager
    async def act_during(self, world: World) -> AsyncIterator[Disturbances]:
        """Let the faults act while this context is open, around the run of the agent.

        Those that begin with the agent have acted when it is entered; when it is left, those that can be undone are.
        """
        self._world = world
        try:
            for slot in self._placed:
                if not slot.waits and not slot.after_ms:
                    await self._begin(slot)
                elif not slot.waits:
                    self._start_task(self._begin(slot, slot.after_ms))
            if any(slot.on_event == "file_write" for slot in self._placed):
                self._start_task(self._poll_workspace())
            yield self
        finally:
            await self._stop(world)

    def handle_event(self, event: str, write: bool = False) -> None:
        """Start the faults that wait for this event, such as `http_call` of the trace or `command` of the audit, or
        for this `write`."""
        self._writes += write
        for slot in self._placed:
            if slot.on_event == event or (write and slot.after_write == self._writes):
                self._begin_due(slot)

    def _begin_due(self, slot: _PlacedFault) -> None:
        if not slot.has_begun and self._world is not None:
            slot.has_begun = True
            task = self._start_task(self._begin(slot))
            self._due.add(task)
            task.add_done_callback(self._due.discard)

    async def settle_write(self) -> bool:
        """Let the faults act that wait for the agent's next write, whose reply has not arrived yet.

        Return whether one of them killed the agent.
        """
        # With its reply, the agent would continue until the signal arrives: how far it gets, such as to a note that the
        # write was done, would depend on the machine.
        for slot in self._placed:
            if slot.after_write == self._writes + 1:
                self._begin_due(slot)
        await self.finish_due()
        return any(RESTART in slot.ctx.memory for slot in self._placed)

    async def finish_due(self) -> None:
        """Wait until the faults have acted that act right now, or that something the agent did has started."""
        if due := self._due | self._tasks & self._acting:
            await asyncio.wait(due, timeout=HEAL_S)

    async def _stop(self, world: World) -> None:
        """Stop starting faults, because the agent has ended, and undo those that can be undone."""
        self._world = None
        # Only faults that act right now are awaited; those that wait for their time or event are cancelled.
        if acting := self._tasks & self._acting:  # a fault that was interrupted halfway could not be undone
            await asyncio.wait(acting, timeout=HEAL_S)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._prove(world)
        for slot in reversed(self._placed):
            await self._heal(slot, world)

    def is_own_command(self, argv: Sequence[str]) -> bool:
        """Return whether a fault started this command; each command is counted once."""
        for slot in self._placed:
            ran: list[tuple[str, ...]] = slot.ctx.memory.get(RAN, [])
            if tuple(argv) in ran:
                ran.remove(tuple(argv))
                return True
        return False

    def list_agent_changes(self, changes: Iterable[FileChange]) -> Iterator[FileChange]:
        """Yield the changes that the agent made. If a fault changed the path last, the agent's change before it."""
        # A path that still is as the fault left it was not changed by the agent since: then only what the agent had
        # done there before counts.
        touched = self._list_fault_changes()
        for change in changes:
            faults = touched.get(change.path, [])
            if not any(fault.is_fault_state(change) for fault in faults):
                yield change
                touched.pop(change.path, None)
        yield from (faults[-1].before for faults in touched.values() if faults[-1].before is not None)

    async def needs_restart(self) -> bool:
        """Return whether a fault killed the agent and requests a restart; True once for each such fault.

        A fault that the agent's last write started acts first, even if the agent has answered; and a kill is not over
        before the killed process has ended.
        """
        await self.finish_due()
        return any(slot.ctx.memory.pop(RESTART, False) for slot in self._placed)

    # -- inside ---------------------------------------------------------------------------------
    def _start_task(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _poll_workspace(self) -> None:
        """Poll the workspace until something changes that no fault changed."""
        while self._world is not None:
            await asyncio.sleep(POLL_S)
            if await asyncio.to_thread(_has_change, self._world) and not self._acting:
                self.handle_event("file_write")
                return

    def _list_fault_changes(self) -> dict[str, list[TouchedPath]]:
        """Return the changes made by faults, by path, in the order in which the faults started."""
        by_path: defaultdict[str, list[TouchedPath]] = defaultdict(list)
        for slot in self._started:
            for path, touched in slot.ctx.memory.get(TOUCHED, {}).items():
                by_path[path].append(touched)
        return by_path

    async def _begin(self, slot: _PlacedFault, after_ms: int = 0) -> None:
        if after_ms:
            await _sleep(after_ms)
        slot.has_begun = True
        world, mode = self._world, slot.injection.mode
        if world is None:
            return
        self._started.append(slot)
        self._acting.add(asyncio.current_task())
        try:
            done = await slot.fault.disturb(world, slot.ctx)
        except HarnessError as broken:
            self._context.sink.add_error(f"world fault {mode}: {broken}", broken.code)
        except Exception as broken:  # a bug in Holdfast or in a plug-in
            self._report_broken(mode, broken)
        else:
            entry = self._make_entry(slot, done)
            # The ledger gets the entry now, as every fault is in it before the agent can notice. Whether the agent hit
            # it is known only at the end, and amends the entry.
            if entry.effect == "met" and isinstance(slot.fault, ProvableFault):
                entry = slot.unproven = replace(entry, effect="no_effect")
            self._context.injector.add_fault(entry)
        finally:
            self._acting.discard(asyncio.current_task())

    def _report_broken(self, mode: str, broken: Exception) -> None:
        why = f"{format_exception(broken)}{format_error_place(broken)}"
        self._context.sink.add_error(f"world fault {mode} failed: {why}", "fault-broken")

    def _make_entry(self, slot: _PlacedFault, done: str) -> FaultMet:
        """Make the ledger entry of a fault that has just acted. A fault that acted after the agent was not met.

        A watched fault may itself have ended the agent, so the watch decides whether it was met.
        """
        late = self._world is None and HIT_TEST not in slot.ctx.memory
        got = f"the agent had ended: {done}" if done and late else done or "there was nothing to disturb"
        effect: Literal["met", "no_effect"] = "met" if done and not late else "no_effect"
        return FaultMet(slot.index, "world", "world", slot.injection.mode, 1, effect, "", got)

    def _prove(self, world: World) -> None:
        """Find out, after the agent has ended, which of the faults it hit."""
        for slot in self._placed:
            if slot.unproven is not None:
                try:
                    why = slot.fault.unmet(world, slot.ctx)
                except Exception as broken:  # a bug in Holdfast or in a plug-in
                    self._report_broken(slot.injection.mode, broken)
                    continue
                self._context.injector.amend_fault(
                    replace(slot.unproven, effect="no_effect" if why else "met", note=why)
                )

    async def _heal(self, slot: _PlacedFault, world: World) -> None:
        if not slot.has_begun or not isinstance(slot.fault, HealingFault):
            return
        try:
            async with asyncio.timeout(HEAL_S):
                await slot.fault.heal(world, slot.ctx)
        except (HarnessError, OSError) as broken:  # OSError includes timeouts
            self._context.sink.add_error(
                f"world fault {slot.injection.mode} could not be undone: {broken or 'timeout'}", "fault-not-undone"
            )


def _has_change(world: World) -> bool:
    try:
        return next(iter(world.changes()), None) is not None
    except (HarnessError, OSError):  # files appear and disappear during the walk
        return False


async def _sleep(ms: float) -> None:
    await asyncio.sleep(ms / 1000)
