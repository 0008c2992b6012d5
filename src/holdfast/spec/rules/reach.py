"""Decides which faults this agent can meet, and suggests how to fix the others."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from holdfast.model.scenario import Scenario
from holdfast.model.world import WorldSpec
from holdfast.protocols.fault import read_traits
from holdfast.reading.reader import Reader
from holdfast.reading.words import find_near_name, join_names
from holdfast.spec.rules.fault_entry import FaultEntry
from holdfast.spec.rules.matrix import FaultSet, MatrixEntry, read_profile_sets
from holdfast.spec.rules.obstacles import Obstacle, find_connection_obstacle, find_world_obstacle, report_wire_keys
from holdfast.spec.rules.tools import Tools, find_tools
from holdfast.spec.sections.agent import AgentSection

_NO_TOOLS = Obstacle(
    "this fault can never be met: the agent declares no tools that Holdfast can wrap",
    "list them in agent.tools, name a ToolRegistry in agent.tool_registry, or mark them with @holdfast.tool; those of "
    "a framework are met in the model's traffic, if the agent is not inline and has no agent.llm",
)
_INLINE = Obstacle(
    "this fault can never be met: an inline agent's traffic does not leave Holdfast's own process",
    "use agent.isolation: fresh or worker; a model function can also be named in agent.llm",
)
_FUNCTIONS = Obstacle(
    "this fault exists only on the wire: a model function in agent.llm cannot meet it",
    "remove agent.llm; Holdfast then intercepts the agent's traffic to its model",
)
_ANSWER = Obstacle(
    "this fault exists only on the wire: damaging the answer cannot simulate it",
    "start the agent with agent.command, or put it behind agent.gateway",
)
_NO_MCP = Obstacle(
    "this fault can never be met: the agent's MCP servers are not known",
    "name them in agent.mcp_config: a file, or a map of mcpServers",
)
_BY_HAND = Obstacle(
    "this fault is met only if the agent's client starts its server with holdfast mcp-proxy",
    "agent.mcp_config puts it there for you",
)
_PROVIDER = Obstacle(
    "this fault can never be met: calls to a model's provider go to the gateway, not to the web",
    "break the model with llm_faults",
)
_INSIDE = Obstacle(
    "the agent's tools run inside it: Holdfast sees their results in the model's traffic, but not their time or effect",
    "add match_url for a tool behind a URL, agent.mcp_config for an MCP tool, or agent.tools for a Python function",
)
_RUNNING = Obstacle(
    "this fault can never be met: Holdfast did not start this HTTP agent and does not see its calls",
    "start it with agent.command, put it behind agent.gateway, or set agent.simulate: answer to damage its answer",
)


class Reach:
    """Answers for one agent in its world."""

    def __init__(self, agent: AgentSection, root: Path, world: WorldSpec | None = None) -> None:
        self.agent = agent
        self._world = world
        self._tools = find_tools(agent, root) if agent.is_python else Tools(frozenset(), True, False)

    @property
    def tools_on_wire(self) -> bool:
        """Whether faults reach a Python agent's tools in its model traffic, because a framework declares them."""
        agent, tools = self.agent, self._tools
        declared = bool(agent.tools or agent.tool_registry or tools.names)
        # Tools of a framework cannot be wrapped as functions, but their calls and results pass in the model's traffic.
        # That works only if the agent runs in a process of its own and its model is not a function in it.
        is_candidate = agent.is_python and agent.isolation != "inline" and not agent.llm
        return is_candidate and not declared and tools.asks and (tools.certain or self._world is None)

    @property
    def takes_relays(self) -> bool:
        """Whether a relay that the user put before an MCP server can find Holdfast."""
        return self.agent.is_started_by_us or (self.agent.is_python and self.agent.isolation != "inline")

    @property
    def tools_closed(self) -> bool:
        """Whether the agent can only call the tools that it declares: no model or server can add others."""
        return self.agent.is_python and (self.agent.isolation == "inline" or not self._tools.asks)

    def find_obstacle(self, fault: FaultEntry) -> Obstacle | None:
        """Return why this agent cannot meet the fault; None if it can, or if only the run can tell."""
        injection, agent = fault.injection, self.agent
        if injection.plane in ("service", "world"):
            return find_world_obstacle(injection, fault.plugin, agent, self._world)
        if injection.target == "input":
            return None
        if agent.kind == "http" and not agent.is_started_by_us:
            if self.agent.simulate != "answer" or fault.injection.plane not in ("tool", "llm", "context"):
                return _RUNNING
            return _ANSWER if read_traits(fault.plugin).wire_only else None
        if agent.kind in ("snapshot", "paragon"):
            return None
        # From here on Holdfast starts the agent or imports it. What it can intercept depends on the plane: model and
        # HTTP traffic needs a separate process, MCP needs a configuration, tools need a declaration.
        inline = agent.isolation == "inline"
        if injection.plane == "llm":
            if self.agent.is_python and self.agent.llm:
                return _FUNCTIONS if read_traits(fault.plugin).wire_only else None
            return _INLINE if inline else None
        url = injection.target if injection.plane == "http" else injection.match_url
        if url is not None and _is_provider_url(url):
            return _PROVIDER
        if injection.plane == "http" or injection.match_url is not None:
            return _INLINE if inline else find_connection_obstacle(injection, fault.plugin, self._world)
        if injection.plane == "mcp":
            return None if agent.mcp_config is not None or agent.gateway else _NO_MCP
        return self._find_tool_obstacle(fault)

    def _find_tool_obstacle(self, fault: FaultEntry) -> Obstacle | None:
        """Return the obstacle for a tool that is identified by name."""
        if self.agent.mcp_config is not None:
            return None
        if self.agent.is_python and (self._tools.declared or not self.tools_on_wire):
            return None if self._tools.declared else _NO_TOOLS
        return None if read_traits(fault.plugin).on_results else _INSIDE

    def is_on_functions(self, fault: FaultEntry) -> bool:
        """Return whether the fault may act on the agent's own Python functions."""
        injection, agent = fault.injection, self.agent
        if not agent.is_python or injection.match_url is not None:
            return False
        if injection.plane == "llm":
            return bool(agent.llm)
        return injection.plane in ("tool", "context") and self._tools.declared

    def check_fault_tool(self, fault: FaultEntry) -> str | None:
        """Return a hint for a tool name that no declared tool has; None if it is known, or if that is not certain."""
        of_tools = fault.injection.plane == "tool" or (fault.injection.plane == "context" and fault.at.has("tool"))
        if not of_tools or fault.injection.match_url is not None:
            return None
        return self.check_tool(fault.injection.target)

    def check_tool(self, glob: str) -> str | None:
        """Return a hint for a glob that matches no declared tool; None if it matches, or if that is not certain."""
        known = self._tools.names
        # An unknown name is reported only if the list of tools is complete for certain: a program, an MCP server or a
        # registry that is filled at runtime may add tools that nobody can see here.
        if self.agent.is_started_by_us or self.agent.mcp_config is not None or not self._tools.certain or not known:
            return None
        if any(fnmatchcase(name, glob) for name in known):
            return None
        miss = self.find_near_tool(glob)
        return f"did you mean {miss}?" if miss else f"tools: {join_names(sorted(known))}"

    def find_near_tool(self, name: str) -> str | None:
        """Return the declared tool that a misspelt name probably means."""
        return find_near_name(name, sorted(self._tools.names))


def _is_provider_url(url: str) -> bool:
    """Return whether a URL glob names the host of a model provider."""
    from holdfast.planes.llm.codecs.formats import find_provider  # the codecs are heavy

    host = url.partition("://")[2] or url
    return find_provider(host.partition("/")[0].partition(":")[0]) is not None


def build_scenarios(
    reader: Reader, reach: Reach | None, entry: MatrixEntry
) -> list[tuple[Scenario, tuple[FaultEntry, ...]]]:
    """Return the scenarios of an entry, each with its faults: those of its profile first. Without `reach` the agent is
    unknown.

    An entry is one scenario, unless its profile contains several: then each of them is one, named after both.
    """
    sets: tuple[FaultSet, ...] = (FaultSet("", ()),)
    if entry.profile is not None:
        sets = read_profile_sets(reader, entry.profile, entry.at.get("profile"))
    if reach is not None:
        for fault in entry.own_faults:
            obstacle = reach.find_obstacle(fault)
            if obstacle is _NO_MCP and reach.takes_relays:
                reader.warn(fault.at, _BY_HAND.message, hint=_BY_HAND.hint, code="lint-mcp-by-hand")
            elif obstacle is not None:
                reader.report(fault.at, obstacle.message, hint=obstacle.hint, code="unreachable-fault")
                continue
            report_wire_keys(reader, reach.agent, fault, functions=reach.is_on_functions(fault))
            hint = reach.check_fault_tool(fault)
            if hint is not None:
                message = f"no tool is called {fault.injection.target[:60]!r}"
                reader.report(fault.at.get("tool"), message, hint=hint, code="unknown-tool")
        sets = _select_reachable_sets(reader, reach, entry, sets)
    return [_build_scenario(reach, entry, fault_set) for fault_set in sets]


def _build_scenario(
    reach: Reach | None, entry: MatrixEntry, fault_set: FaultSet
) -> tuple[Scenario, tuple[FaultEntry, ...]]:
    obstacles = [(f, None if reach is None else reach.find_obstacle(f)) for f in fault_set.faults]
    unmet = [(f, obstacle) for f, obstacle in obstacles if obstacle is not None]
    faults = (*(f for f, obstacle in obstacles if obstacle is None), *entry.own_faults)
    name = f"{entry.name}/{fault_set.name}" if fault_set.name else entry.name
    scenario = Scenario(
        name,
        tuple(f.injection for f in faults),
        entry.profile,
        tuple(f.injection.label for f, _ in unmet),
        entry.at.position,
        tuple((obstacle.message, obstacle.hint) for _, obstacle in unmet),
    )
    return scenario, faults


def _select_reachable_sets(
    reader: Reader, reach: Reach, entry: MatrixEntry, sets: tuple[FaultSet, ...]
) -> tuple[FaultSet, ...]:
    """Return the sets with a fault that the agent can meet.

    Warns about the others, and reports an error if none is left.
    """
    # A profile is written for all agents: a set that this agent cannot meet at all is left out with a warning. The
    # profile itself is an error only if nothing remains.
    beyond = [
        fault_set
        for fault_set in sets
        if fault_set.faults and all(reach.find_obstacle(f) is not None for f in fault_set.faults)
    ]
    if len(beyond) == len(sets) and not (entry.own_faults and not sets[0].name):
        obstacle = reach.find_obstacle(beyond[0].faults[0])
        message = f"the agent can meet none of the faults of profile {entry.profile}"
        hint = obstacle.hint if obstacle else ""
        reader.report(entry.at.get("profile"), message, hint=hint, code="unreachable-fault")
        return sets
    for fault_set in beyond:
        obstacle = reach.find_obstacle(fault_set.faults[0])
        if fault_set.name and obstacle is not None:
            values = (f"{entry.name}/{fault_set.name}", obstacle.message)
            message = f"{values[0]} is left out: {obstacle.message}"
            at = entry.at.get("profile")
            reader.warn(at, message, hint=obstacle.hint, code="left-out-scenario", values=values)
    return tuple(
        fault_set for fault_set in sets if not fault_set.name or not any(fault_set is other for other in beyond)
    )
