"""Which faults this agent can meet, and what to do about the others."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from holdfast.model.spec import Scenario
from holdfast.spec.matrix import MatrixEntry, profile_faults
from holdfast.spec.placing import Placed
from holdfast.spec.reader import Reader
from holdfast.spec.sections.agent import AgentSection
from holdfast.spec.tools import Tools, tools_of
from holdfast.spec.words import listed, near


class Obstacle(Struct, frozen=True):
    """Why a fault cannot be met, and the ways out."""

    message: str
    hint: str


_NO_TOOLS = Obstacle(
    "nothing can meet this fault: the agent declares no tools that Holdfast can wrap",
    "list them in agent.tools, name a registry in agent.tool_registry, or mark them with @holdfast.tool",
)
_NO_LLM = Obstacle(
    "nothing can meet this fault: the agent declares no model function",
    "name it in agent.llm, as in llm: my_agent:call_model",
)
_RUNNING = Obstacle(
    "nothing can meet this fault: Holdfast did not start this HTTP agent and does not see its calls",
    "start it with agent.command, put it behind agent.gateway, or set agent.simulate: answer to damage its answer",
)


class Reach:
    """Answers for one agent."""

    def __init__(self, agent: AgentSection, root: Path) -> None:
        self._agent = agent
        self._tools = tools_of(agent, root) if agent.in_python else Tools(frozenset(), True, False)

    def obstacle(self, fault: Placed) -> Obstacle | None:
        """Why this agent cannot meet the fault; None if it can, or if only the run can tell."""
        inner = fault.injection.plane in ("tool", "llm", "context")
        if not inner or fault.injection.target == "input" or self._agent.started_by_us:
            return None
        if self._agent.kind == "http":
            return None if self._agent.simulate == "answer" else _RUNNING
        if fault.injection.plane == "llm":
            return None if self._agent.llm else _NO_LLM
        if fault.injection.match_url is not None or self._agent.mcp_config is not None:
            return None
        return None if self._tools.declared else _NO_TOOLS

    def stranger(self, fault: Placed) -> str | None:
        """A hint for a tool name that no declared tool has; None if it is known or cannot be told."""
        target = fault.injection.target
        known = self._tools.names
        skip = self._agent.started_by_us or self._agent.mcp_config is not None or fault.injection.match_url is not None
        if fault.injection.plane != "tool" or skip or not self._tools.certain or not known:
            return None
        if any(fnmatchcase(name, target) for name in known):
            return None
        miss = near(target, sorted(known))
        return f"did you mean {miss}?" if miss else f"tools: {listed(sorted(known))}"


def scenario(reader: Reader, reach: Reach | None, entry: MatrixEntry, path: str) -> tuple[Scenario, tuple[Placed, ...]]:
    """The scenario of an entry, and its faults: those of its profile first. No reach: the agent is not known."""
    from_profile: tuple[Placed, ...] = ()
    if entry.profile is not None:
        from_profile = profile_faults(reader, entry.profile, entry.at.get("profile"), f"{path}.profile")
    unmet = [f for f in from_profile if reach is not None and reach.obstacle(f) is not None]
    met = tuple(f for f in from_profile if not any(f is other for other in unmet))
    left_out = tuple(f.label for f in unmet)
    if reach is not None:
        _own_faults(reader, reach, entry)
        if from_profile and not met and not entry.own:
            _nothing_left(reader, reach, entry, from_profile, path)
    faults = (*met, *entry.own)
    made = Scenario(entry.name, tuple(f.injection for f in faults), entry.profile, left_out, entry.at.position)
    return made, faults


def _own_faults(reader: Reader, reach: Reach, entry: MatrixEntry) -> None:
    for fault in entry.own:
        obstacle = reach.obstacle(fault)
        if obstacle is not None:
            reader.error(fault.at, fault.path, obstacle.message, hint=obstacle.hint, code="unreachable-fault")
            continue
        hint = reach.stranger(fault)
        if hint is not None:
            message = f"no tool is called {fault.injection.target[:60]!r}"
            reader.error(fault.at.get("tool"), f"{fault.path}.tool", message, hint=hint, code="unknown-tool")


def _nothing_left(reader: Reader, reach: Reach, entry: MatrixEntry, faults: tuple[Placed, ...], path: str) -> None:
    obstacle = reach.obstacle(faults[0])
    hint = obstacle.hint if obstacle else ""
    message = f"the agent can meet none of the faults of profile {entry.profile}"
    reader.error(entry.at.get("profile"), f"{path}.profile", message, hint=hint, code="unreachable-fault")
