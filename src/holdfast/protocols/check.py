"""A check: what a rule asks of an answer, of the calls of a trial, or of what the agent left. For example:

    @dataclass(frozen=True)
    class Brief:
        "The answer has at most `most` words."

        most: int = 20

        traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="text")

        def decide(self, exhibit: Exhibit) -> Finding:
            words = len(exhibit.text.split())
            return Finding(words <= self.most, f"{words} words")

`docs/extending.md` tells how such a plug-in is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Protocol, runtime_checkable

from msgspec import Struct

from holdfast.model.exhibit import Exhibit as Exhibit
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits as CheckTraits
from holdfast.model.traits import ServiceRead as ServiceRead
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.world import World


class Check(Protocol):
    """Judges one exhibit. Pure: the same exhibit gives the same finding."""

    traits: ClassVar[CheckTraits]

    def decide(self, exhibit: Exhibit) -> Finding: ...


@runtime_checkable
class CodesTrait(Protocol):
    """A check that gives its findings codes. Without this trait failures are grouped by what stays in their reasons."""

    codes: ClassVar[Mapping[str, str]]
    """Each code of a finding, in kebab-case, and what it means."""


@runtime_checkable
class ConfiguredCheck(Protocol):
    """A check whose settings decide over its traits."""

    def configured(self) -> CheckTraits:
        """Its traits with these settings."""
        ...


def check_traits(check: Check) -> CheckTraits:
    """The traits of a check with its settings."""
    return check.configured() if isinstance(check, ConfiguredCheck) else check.traits


@runtime_checkable
class FastidiousPlugin(Protocol):
    """A plug-in whose settings may not fit together."""

    def problems(self) -> Iterable[tuple[str, str]]:
        """Each setting that does not fit, and why: they become errors of the spec."""
        ...


@runtime_checkable
class AdvisingCheck(Protocol):
    """A check that warns of settings that probably do not mean what their author thinks."""

    def lint(self) -> Iterable[tuple[str, str, str]]:
        """The code of each warning, the setting, and the words."""
        ...


@runtime_checkable
class TableCheck(Protocol):
    """A check of tables of a database."""

    def tables_read(self) -> Iterable[tuple[str, str]]:
        """Each setting that names a table without its database, and the table."""
        ...


@runtime_checkable
class GatheringCheck(Protocol):
    """A check of the state an agent left: records its inputs while the world is alive."""

    async def gather(self, world: World, seen: Observation) -> Evidence: ...


@runtime_checkable
class ForeseeingCheck(Protocol):
    """A check that can tell before the agent starts that it could never be gathered."""

    async def foresee(self, world: World) -> None:
        """Raises HarnessError: an error of the trial, never the agent's."""
        ...


class Advice(Struct, frozen=True, omit_defaults=True):
    """What a model said when it was asked."""

    text: str
    model: str = ""
    """Who said it: `provider/name`, or a script."""
    notes: tuple[str, ...] = ()
    """What the reader should know: a temperature that the model refused, for example."""


class Ask(Protocol):
    """Asks a model, cached by content; raises HarnessError if it cannot."""

    async def __call__(
        self,
        model: str,
        system: str,
        prompt: str,
        *,
        temperature: float | None,
        vote: int,
        fits: Callable[[str], bool],
    ) -> Advice:
        """A temperature of None is the model's own. Only a reply that fits is kept: any other is asked for anew."""
        ...


@runtime_checkable
class ConsultingCheck(Protocol):
    """A check that may ask a model once the world is gone, if its traits say so; what it says becomes evidence."""

    async def consult(self, seen: Observation, control: Observation | None, evidence: Evidence, ask: Ask) -> Evidence:
        """`control` is the calm run of a check that needs one."""
        ...
