"""A kind of service: what a world has next to the agent, as a database or a mock. For example:

    @dataclass(frozen=True)
    class Echo:
        "Sends every line back."

        traits: ClassVar[ServiceTraits] = ServiceTraits(port=7, schemes=("echo",))

        async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
            return EchoKeeper(spec)

`docs/extending.md` has the keeper and the service, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from msgspec import Struct

from holdfast.model.trial import Trial
from holdfast.model.world import AuditEvent, ServiceSpec
from holdfast.model.world import ServiceTraits as ServiceTraits

if TYPE_CHECKING:
    from pathlib import Path
    from urllib.parse import SplitResult


class Rows(Struct, frozen=True):
    """What a query gave: values as JSON can hold them, dates as ISO text, decimals as numbers where exact."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    count: int
    """Of all rows, also of those that are not kept."""


class Service(Protocol):
    """A service of one trial, alive."""

    spec: ServiceSpec
    upstream: tuple[str, int] | str
    """Where it really listens: host and port, or the path of a Unix socket."""

    @property
    def variables(self) -> Mapping[str, str]:
        """What an agent that reaches it at `{host}:{port}` is told: patterns, filled in by the world."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know: the version that stands in for an image, for example."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class ManyPorts(Service, Protocol):
    """A service that listens on several ports; `upstream` is the first."""

    def upstream_of(self, port: int) -> tuple[str, int] | str:
        """Where one of its ports really is."""
        ...


@runtime_checkable
class Lasting(Service, Protocol):
    """A service whose content can be written to a file, and put into another of its kind."""

    async def dump(self, path: Path) -> str:
        """Writes all that it holds, as the last thing that is asked of it; what had to be left out, in a line.

        HarnessError if it cannot.
        """
        ...

    async def restore(self, path: Path) -> None:
        """Puts what `dump` wrote into a service that nobody has used; HarnessError if it cannot."""
        ...


@runtime_checkable
class Database(Service, Protocol):
    """A service that speaks SQL."""

    async def query(self, sql: str, *, timeout_s: float, keep: int = 100) -> Rows:
        """One statement in a read-only transaction; QueryFailed if the database refuses it, TimeoutError if late."""
        ...

    async def execute(self, sql: str) -> None:
        """Statements of a fixture; QueryFailed names the one that failed."""
        ...

    async def prepare(self, sql: str) -> None:
        """Whether the statement could run; QueryFailed if not."""
        ...

    async def writes(self) -> Iterable[AuditEvent]:
        """The writes of the agent since the snapshot, as the statement log and the row counters have them.

        The agent has ended: sessions that it left open are ended here.
        """
        ...

    async def mark(self) -> None:
        """The snapshot: writes count from here."""
        ...


class Recorded(Struct, frozen=True, omit_defaults=True):
    """One request that reached a mock."""

    method: str
    path: str
    """Without the query."""
    query: str
    headers: tuple[tuple[str, str], ...]
    body: str
    status: int
    response: str
    ts: float
    cut: bool = False
    """The body was longer: only its beginning is kept."""
    unread: str = ""
    """Why the body cannot be understood: its content encoding, for example, is not known. Then it is as it came."""


@runtime_checkable
class Mock(Service, Protocol):
    """A service that answers by its routes and records what it was asked."""

    @property
    def requests(self) -> Sequence[Recorded]:
        """In the order in which they came; the first ones, if there were too many."""
        ...

    @property
    def dropped(self) -> int:
        """Requests that came after those that are kept."""
        ...


class ServiceKeeper(Protocol):
    """What a site keeps warm of one service: templates, a warm server. Gives every trial a service of its own."""

    async def provide(self, trial: Trial, *, alone: bool) -> Service:
        """A fresh service; `alone`: faults will hit the server itself, so no other trial may share it."""
        ...

    async def close(self) -> None: ...


class ServicePlace(Struct, frozen=True):
    """Where a keeper may work."""

    folder: Path
    """Its own, on this machine; gone when the site is closed."""
    docker: bool = False
    """Whether it may start containers."""


class ServiceKind(Protocol):
    """A kind of service: a frozen dataclass whose fields are the keys that only its entries in `services` have.

    One plug-in of the family `services`; `traits` are a class variable.
    """

    traits: ClassVar[ServiceTraits]

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        """What a site keeps warm of one service; references in the spec are replaced by values.

        UserError says what is missing and how to get it; NoServer where a container of its image could be it instead.
        """
        ...


class ServiceContainer(Protocol):
    """A container of an image, ready, of which a kind makes its service."""

    spec: ServiceSpec
    socket_folder: Path
    """A folder that the sockets of its ports are in."""

    @property
    def alive(self) -> bool: ...

    def path(self, port: int) -> str:
        """The Unix socket that leads to one of its ports."""
        ...

    async def close(self) -> None: ...


class WarmService(Service, Protocol):
    """A service that may have waited for its trial."""

    @property
    def alive(self) -> bool:
        """Whether its server still runs."""
        ...


@runtime_checkable
class ContainedKind(ServiceKind, Protocol):
    """A kind that knows more of a container of its image than its ports."""

    async def contained(self, running: ServiceContainer, notes: tuple[str, ...]) -> WarmService: ...


@runtime_checkable
class ReachableKind(ServiceKind, Protocol):
    """A kind that knows more of one that runs elsewhere than its address; `type: external` with one of its schemes."""

    def elsewhere(self, spec: ServiceSpec, url: SplitResult) -> Service: ...
