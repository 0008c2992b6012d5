"""A world fault disturbs the surroundings of one trial while the agent runs. For example:

    @dataclass(frozen=True)
    class Tidied:
        "Somebody has removed the notes."

        traits: ClassVar[FaultTraits] = FaultTraits(disturbs="paths")

        async def disturb(self, world: World, ctx: FaultContext) -> str:
            await world.sandbox.run(["rm", "-f", "notes.txt"], world.environ)
            return "notes.txt is gone"

`docs/extending.md` shows how to install such a plug-in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from msgspec import Struct

from holdfast.protocols.fault import FaultContext
from holdfast.protocols.sandbox import FileChange
from holdfast.protocols.world import World

RAN = "ran"
"""In the memory of a WorldFault: a list of the commands, as tuples of words, that it ran itself."""
TOUCHED = "touched"
"""In the memory of a WorldFault: the paths of the workspace that it changed, each with a TouchedPath."""
HIT_TEST = "hit_test"
"""In the memory of a WorldFault: a function that tells whether a call of the agent failed because of it."""
AFTER_WRITE = "after_write"
"""In the memory of a WorldFault: true if a write of the agent started it, so that the agent was running until then."""
RESTART = "restart"
"""In the memory of a WorldFault: true if the agent was killed and must be started again."""


class TouchedPath(Struct, frozen=True):
    """A path of the workspace that a fault changed."""

    before: FileChange | None
    """The agent's change of the path before the fault."""
    is_fault_state: Callable[[FileChange], bool]
    """Whether a change is what the fault left there, and not something the agent did since."""


class WorldFault(Protocol):
    """Disturbs the surroundings of one trial while the agent runs.

    It records its own actions, to keep them out of the agent's.
    """

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        """Disturb the world; returns a description for the ledger, empty if there was nothing to disturb.

        Raises HarnessError if the world cannot.
        """


@runtime_checkable
class HealingFault(WorldFault, Protocol):
    """A WorldFault that is undone when the agent has ended, so that evidence can be recorded."""

    async def heal(self, world: World, ctx: FaultContext) -> None: ...


@runtime_checkable
class ProvableFault(WorldFault, Protocol):
    """A WorldFault that is met only if the agent hit it. Any other WorldFault is met once it has acted."""

    def unmet(self, world: World, ctx: FaultContext) -> str:
        """Return, when the agent has ended, why it was not met or why that is unknown; empty if it was met."""
