"""A Site: what one worker keeps open between trials. Opened once from a Spec, closed at the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.execute.targets import needs_tool_check
from holdfast.execute.worlds import BareWorlds, Worlds
from holdfast.model.codec import encode_canonical
from holdfast.model.codes import RunNote
from holdfast.model.spec import Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.spec.references import interpolate
from holdfast.world.bare_world import Machine

if TYPE_CHECKING:
    from holdfast.agents import Agent
    from holdfast.execute.simulated_users import SimulatedUsers
    from holdfast.world.program_search import ProgramStamps


class Site:
    """The opened agent, and the worlds of its trials."""

    def __init__(
        self,
        spec: Spec,
        agent: Agent,
        concurrency: int,
        notes: tuple[RunNote, ...] = (),
        targets: tuple[str, ...] = (),
        *,
        worlds: Worlds | None = None,
    ) -> None:
        self.spec = spec
        self.targets = targets
        """Tools and model functions that faults can hit."""
        self.awaits_tools = needs_tool_check(spec, targets)
        """The next calm trial decides whether tool faults can be met at all."""
        self.agent = agent
        self.worlds: Worlds = worlds or BareWorlds(Machine(Path(spec.path).parent, {}))
        self.concurrency = concurrency
        self.notes = notes
        self.simulate = spec.agent.simulate == "answer"
        self.limits = spec.agent.limits
        """The limits of a trial; None: no limit."""
        self.has_params = spec.params != ({},)
        self._by_params: dict[bytes, Site] = {}
        self.programs: ProgramStamps | None = None
        """The agent's programs, as they were when it was opened."""
        self.users: SimulatedUsers | None = None
        """The simulated users of tasks that have one."""
        self.close_rest: Callable[[], Awaitable[None]] | None = None
        """Closes what the agent was opened with."""

    def add(self, params: Mapping[str, Any], site: Site) -> None:
        """Trials with these parameters run on that site, because the agent's section refers to them."""
        self._by_params[encode_canonical(params)] = site

    def find_site(self, trial: Trial) -> Site:
        """Return the site of the trial."""
        return self._by_params[encode_canonical(trial.params)] if self._by_params else self

    def fill_task(self, trial: Trial) -> Task:
        """Return the task with `{{ params.x }}` filled in; the trial keeps what was written."""
        task = trial.task
        turns = tuple([interpolate(turn, trial.params) for turn in task.turns])
        if task.user is not UNSET and task.user.goal:
            user = replace(task.user, goal=interpolate(task.user.goal, trial.params))
            return replace(task, turns=turns, user=user)
        return task if turns == task.turns else replace(task, turns=turns)

    def list_changed_programs(self) -> tuple[str, ...]:
        """Programs of the agent that changed since it was opened."""
        sites = {id(site): site for site in (self, *self._by_params.values())}.values()
        return tuple(dict.fromkeys(path for one in sites if one.programs for path in one.programs.list_changed()))

    async def close(self) -> None:
        """Close every agent, then what it was opened with; one failure does not stop the others."""
        async with AsyncExitStack() as parts:
            for site in self._by_params.values():
                if site is not self:
                    parts.push_async_callback(site.close)
            if self.close_rest is not None:
                parts.push_async_callback(self.close_rest)
            parts.push_async_callback(self.agent.close)
