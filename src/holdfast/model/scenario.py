"""The weather of a trial: Scenarios, their Injections, and the rules that they concern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

Plane = Literal["tool", "llm", "context", "mcp", "http", "service", "world"]


class Position(Struct, frozen=True):
    """A position in the spec's file; line and column count from 1."""

    line: int
    column: int = 1


class Schedule(Struct, frozen=True, omit_defaults=True):
    """When a fault fires; calls are counted as they arrive at the target, per trial."""

    probability: Annotated[float, Meta(description="The chance that a call is hit.", ge=0, le=1)] = 1.0
    after_calls: Annotated[int, Meta(description="Let this many calls pass, then fire.", ge=0)] | None = None
    times: Annotated[int, Meta(description="Stop after the fault was met this many times.", ge=1)] | None = None
    every: Annotated[int, Meta(description="Fire on every Nth call.", ge=1)] | None = None
    on_call: Annotated[int, Meta(description="Fire on the Nth call only.", ge=1)] | None = None
    count: Annotated[
        Literal["attempts", "logical"],
        Meta(
            description="What on_call and after_calls count: each attempt, or calls without a client library's retries."
        ),
    ] = "attempts"
    after_event: Annotated[
        dict[str, int] | None,
        Meta(description="Fire on the Nth call that changes something, as in {write: 2}."),
    ] = None
    """Counted over the calls of the whole trial, whatever their target."""
    match: Annotated[
        dict[str, Any] | None,
        Meta(description="Fire only on calls with these arguments: name to value or glob."),
    ] = None


INPUT = "input"
"""The target of an attack on the agent's input."""


class Injection(Struct, frozen=True, omit_defaults=True):
    """A fault with its plane, target and schedule."""

    plane: Plane
    target: str
    mode: str
    settings: dict[str, Any] = field(default_factory=dict)
    schedule: Schedule = Schedule()
    match_url: str | None = None
    raises: str | None = None
    """`module:Class` of the exception that a failing Python call raises."""
    position: Position | None = None

    @property
    def content(self) -> list[Any]:
        """What the fault does, without its position in the file."""
        return [self.plane, self.target, self.mode, self.settings, self.schedule, self.match_url, self.raises]

    @property
    def label(self) -> str:
        """Its name for people: `tool error on search`."""
        target = self.match_url or self.target
        plain = self.plane in ("llm", "world") or (self.plane == "context" and target in ("*", INPUT))
        return f"{self.plane} {self.mode}" + ("" if plain else f" on {target}")


class Scenario(Struct, frozen=True, omit_defaults=True):
    """A named set of faults: the weather of a trial. Without faults it is calm."""

    name: str
    injections: tuple[Injection, ...] = ()
    profile: str | None = None
    left_out: tuple[str, ...] = ()
    """A profile's faults that this agent cannot meet, by name."""
    position: Position | None = None
    left_out_why: tuple[tuple[str, str], ...] = ()
    """For each of those: why, and what to do."""
    follows_values: bool = False
    """Whether a trial notes the values in requests to services and their replies: a map shows what feeds what."""

    steady: bool = False
    """Whether every replica draws the same random values: a repeated trial of a hunt has exactly the same faults."""

    @property
    def calm(self) -> bool:
        return not self.injections

    @property
    def waits_for_writes(self) -> bool:
        """Whether a fault of the world waits for a write of the agent."""
        return any(i.plane == "world" and "after_event" in i.settings for i in self.injections)

    @property
    def on_calls(self) -> bool:
        """Whether a fault acts on the agent's calls, and not only on its input."""
        return any(i.plane != "context" or i.target != "input" for i in self.injections)

    @property
    def content(self) -> Any:
        """The values that determine the weather, without positions in the file."""
        return [self.name, [injection.content for injection in self.injections]]


CALM = Scenario(name="")
"""The weather of a trial whose scenario is not in the spec, such as a control's."""


When = Literal["always", "tool_faults_active", "llm_faults_active", "any_chaos_active", "no_chaos"]
PLANES: Mapping[str, frozenset[str]] = {
    "tool_faults_active": frozenset({"tool", "mcp"}),
    "llm_faults_active": frozenset({"llm"}),
}
"""The planes that a `when` can name."""


def find_needed_injections(when: When, scenario: Scenario) -> frozenset[int]:
    """Return the indexes of the injections that must be met for a rule with this `when` to count under chaos."""
    # A rule that is judged only under tool faults proves something only if a tool fault was met. Any other `when`
    # accepts every fault of the scenario.
    planes = PLANES.get(when)
    return frozenset(i for i, x in enumerate(scenario.injections) if planes is None or x.plane in planes)


def is_applicable(when: When, scenario: Scenario) -> bool:
    """Return whether a rule with this `when` is judged in the scenario."""
    if when == "always":
        return True
    if when == "no_chaos":
        return scenario.calm
    return bool(find_needed_injections(when, scenario))
