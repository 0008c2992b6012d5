"""A fault of the world: it disturbs the place of one trial while the agent runs. For example:

    @dataclass(frozen=True)
    class Tidied:
        "Somebody has removed the notes."

        traits: ClassVar[FaultTraits] = FaultTraits(disturbs="paths")

        async def disturb(self, world: World, ctx: FaultContext) -> str:
            await world.sandbox.run(["rm", "-f", "notes.txt"], world.environ)
            return "notes.txt is gone"

`docs/extending.md` tells how such a plug-in is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from msgspec import Struct

from holdfast.protocols.fault import FaultContext
from holdfast.protocols.sandbox import FileChange
from holdfast.protocols.world import World

RAN = "ran"
"""In the memory of a WorldFault: a list of the commands, as tuples of words, that it ran beside the agent's."""
TOUCHED = "touched"
"""In the memory of a WorldFault: what it changed of the workspace, a Touched by its path."""
FELT = "felt"
"""In the memory of a WorldFault: tells whether a call of the agent failed for it, from before it was done."""
RESTART = "restart"
"""In the memory of a WorldFault: true if the agent was killed and is to be started again."""


class Touched(Struct, frozen=True):
    """A path of the workspace that a fault changed."""

    before: FileChange | None
    """What the agent had done there by then."""
    stands: Callable[[FileChange], bool]
    """Whether a change is what the fault left there, and nothing that the agent did since."""


class WorldFault(Protocol):
    """Disturbs the place of one trial while it is alive. What it does is no doing of the agent's, so it notes it."""

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        """What was done, for the ledger; empty if nothing was there to disturb. HarnessError where the world cannot."""
        ...


@runtime_checkable
class HealingFault(WorldFault, Protocol):
    """A WorldFault that is undone when the agent has ended, so that evidence can be gathered."""

    async def heal(self, world: World, ctx: FaultContext) -> None: ...


@runtime_checkable
class ProvableFault(WorldFault, Protocol):
    """A WorldFault that is met only if the agent ran into it. Without this power, one that was done is met."""

    def unmet(self, world: World, ctx: FaultContext) -> str:
        """Asked when the agent has ended: why it was not met, or why that cannot be seen; empty if it was."""
        ...
