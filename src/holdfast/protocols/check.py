"""A check: judges an answer, the calls of a trial, or the state that the agent left. For example:

    @dataclass(frozen=True)
    class Brief:
        "The answer has at most `most` words."

        most: int = 20

        traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="text")

        def decide(self, exhibit: Exhibit) -> Finding:
            words = len(exhibit.text.split())
            return Finding(words <= self.most, f"{words} words")

`docs/extending.md` shows how to install such a plug-in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Protocol, runtime_checkable

from msgspec import Struct

from holdfast.model.observation import Exhibit as Exhibit
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
    """A check whose findings have codes. Without them, failures are grouped by the fixed parts of their reasons."""

    codes: ClassVar[Mapping[str, str]]
    """Each code of a finding, in kebab-case, and its meaning."""


@runtime_checkable
class ConfiguredCheck(Protocol):
    """A check whose traits depend on its settings."""

    def configured(self) -> CheckTraits:
        """Return its traits with these settings."""


def check_traits(check: Check) -> CheckTraits:
    """Return the traits of a check with its settings."""
    return check.configured() if isinstance(check, ConfiguredCheck) else check.traits


@runtime_checkable
class ValidatingPlugin(Protocol):
    """A plug-in that validates its settings."""

    def problems(self) -> Iterable[tuple[str, str]]:
        """Return each invalid setting, and why: they become errors of the spec."""


@runtime_checkable
class AdvisingCheck(Protocol):
    """A check that warns about settings that probably do not mean what their author intended."""

    def lint(self) -> Iterable[tuple[str, str, str]]:
        """Yield the code, the setting and the text of each warning."""


@runtime_checkable
class TableCheck(Protocol):
    """A check on tables of a database."""

    def tables_read(self) -> Iterable[tuple[str, str]]:
        """Return each setting that names a table without its database, and the table."""


@runtime_checkable
class GatheringCheck(Protocol):
    """A check on the state an agent left: it records its inputs while the world exists."""

    async def gather(self, world: World, observation: Observation) -> Evidence: ...


@runtime_checkable
class ForeseeingCheck(Protocol):
    """A check that can tell before the agent starts that its evidence cannot be recorded."""

    async def foresee(self, world: World) -> None:
        """Raise HarnessError, which is an error of the trial, never of the agent."""


class Advice(Struct, frozen=True, omit_defaults=True):
    """A model's reply."""

    text: str
    model: str = ""
    """The model that replied: `provider/name`, or a script."""
    notes: tuple[str, ...] = ()
    """Notes for the reader, for example that the model rejects a temperature."""


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
        """Ask the model. A temperature of None is the model's own.

        Only a reply for which `fits` is true is stored; any other is requested again.
        """


@runtime_checkable
class ConsultingCheck(Protocol):
    """A check that may ask a model after the world is closed, if its traits say so; the reply becomes evidence."""

    async def consult(
        self, observation: Observation, control: Observation | None, evidence: Evidence, ask: Ask
    ) -> Evidence:
        """Ask the model; `control` is the calm run of a check that needs one."""
