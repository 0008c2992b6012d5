"""Which faults this agent can meet, and what to do about the others."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from holdfast.model.spec import NOT_ON_RESULTS, Scenario
from holdfast.spec.matrix import FaultSet, MatrixEntry, profile_sets
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
_INLINE = Obstacle(
    "nothing can meet this fault: an inline agent's traffic does not leave Holdfast's own process",
    "use agent.isolation: fresh or worker; a model function can also be named in agent.llm",
)
_FUNCTIONS = Obstacle(
    "this fault is one of the wire: a model function that agent.llm names cannot meet it",
    "remove agent.llm, and Holdfast meets the agent's traffic to its model",
)
_ANSWER = Obstacle(
    "this fault is one of the wire: damaging an answer cannot show it",
    "start the agent with agent.command, or put it behind agent.gateway",
)
_NO_MCP = Obstacle(
    "nothing can meet this fault: the agent's MCP servers are not known",
    "name them in agent.mcp_config, a file or a map of mcpServers",
)
_PROVIDER = Obstacle(
    "nothing can meet this fault: calls to a model's provider go to the gateway, not to the web",
    "break the model with llm_faults",
)
_INSIDE = Obstacle(
    "the agent's tools run inside it: Holdfast sees their results in the model's traffic, but not their time or effect",
    "add match_url for a tool behind a URL, or agent.mcp_config for an MCP tool",
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
        injection, agent = fault.injection, self._agent
        if injection.plane in ("service", "world") or injection.target == "input":
            return None
        if agent.kind == "http" and not agent.started_by_us:
            return self._answer_obstacle(fault)
        if agent.kind in ("snapshot", "paragon"):
            return None
        inline = agent.isolation == "inline"
        if injection.plane == "llm":
            return self._model_obstacle(fault, inline)
        url = injection.target if injection.plane == "http" else injection.match_url
        if url is not None and _of_a_provider(url):
            return _PROVIDER
        if injection.plane == "http" or injection.match_url is not None:
            return _INLINE if inline else None
        if injection.plane == "mcp":
            return None if agent.mcp_config is not None or agent.gateway else _NO_MCP
        return self._tool_obstacle(fault)

    def _answer_obstacle(self, fault: Placed) -> Obstacle | None:
        """Of a running agent, whose answer can be damaged instead."""
        if self._agent.simulate != "answer" or fault.injection.plane not in ("tool", "llm", "context"):
            return _RUNNING
        return _ANSWER if type(fault.made).__dict__.get("wire_only") else None

    def _model_obstacle(self, fault: Placed, inline: bool) -> Obstacle | None:
        if self._agent.in_python and self._agent.llm:
            return _FUNCTIONS if type(fault.made).__dict__.get("wire_only") else None
        return _INLINE if inline else None

    def _tool_obstacle(self, fault: Placed) -> Obstacle | None:
        """Of a tool that is met by its name."""
        if self._agent.mcp_config is not None:
            return None
        if self._agent.in_python:
            return None if self._tools.declared else _NO_TOOLS
        return _INSIDE if fault.injection.mode in NOT_ON_RESULTS else None

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


def _of_a_provider(url: str) -> bool:
    """Whether a URL glob names the host of a model's provider."""
    from holdfast.planes.llm.formats import provider_of_host

    host = url.partition("://")[2] or url
    return provider_of_host(host.partition("/")[0].partition(":")[0]) is not None


def scenarios(
    reader: Reader, reach: Reach | None, entry: MatrixEntry, path: str
) -> list[tuple[Scenario, tuple[Placed, ...]]]:
    """The scenarios of an entry, each with its faults: those of its profile first. No reach: the agent is not known.

    An entry is one scenario, unless its profile holds several: then each of them is one, named after both.
    """
    sets: tuple[FaultSet, ...] = (FaultSet("", ()),)
    if entry.profile is not None:
        sets = profile_sets(reader, entry.profile, entry.at.get("profile"), _named(path))
    if reach is not None:
        _own_faults(reader, reach, entry)
        sets = _reached(reader, reach, entry, sets, path)
    return [_scenario(reach, entry, one) for one in sets]


def _scenario(reach: Reach | None, entry: MatrixEntry, one: FaultSet) -> tuple[Scenario, tuple[Placed, ...]]:
    found = [(f, None if reach is None else reach.obstacle(f)) for f in one.faults]
    unmet = [(f, obstacle) for f, obstacle in found if obstacle is not None]
    faults = (*(f for f, obstacle in found if obstacle is None), *entry.own)
    name = f"{entry.name}/{one.name}" if one.name else entry.name
    scenario = Scenario(
        name,
        tuple(f.injection for f in faults),
        entry.profile,
        tuple(f.label for f, _ in unmet),
        entry.at.position,
        tuple((obstacle.message, obstacle.hint) for _, obstacle in unmet),
    )
    return scenario, faults


def _reached(
    reader: Reader, reach: Reach, entry: MatrixEntry, sets: tuple[FaultSet, ...], path: str
) -> tuple[FaultSet, ...]:
    """The sets of which the agent can meet something. The others are named with the reason; none left is an error."""
    beyond = [one for one in sets if one.faults and all(reach.obstacle(f) is not None for f in one.faults)]
    if len(beyond) == len(sets) and not (entry.own and not sets[0].name):
        _nothing_left(reader, reach, entry, beyond[0].faults, path)
        return sets
    for one in beyond:
        obstacle = reach.obstacle(one.faults[0])
        if one.name and obstacle is not None:
            message = f"{entry.name}/{one.name} is left out: {obstacle.message}"
            at = entry.at.get("profile")
            reader.warn(at, _named(path), message, hint=obstacle.hint, code="left-out-scenario")
    return tuple(one for one in sets if not one.name or not any(one is other for other in beyond))


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
    reader.error(entry.at.get("profile"), _named(path), message, hint=hint, code="unreachable-fault")


def _named(path: str) -> str:
    """Where the profile was named: in the entry at `path`, or by the option."""
    return path if path.startswith("--") else f"{path}.profile"
