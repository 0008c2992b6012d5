"""A kind of service that runs alongside the agent, such as a database or a mock. For example:

    @dataclass(frozen=True)
    class Echo:
        "Sends every line back."

        traits: ClassVar[ServiceTraits] = ServiceTraits(port=7, schemes=("echo",))

        async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
            return EchoKeeper(spec)

`docs/extending.md` shows the keeper and the service, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable
from urllib.parse import SplitResult

from msgspec import Struct

from holdfast.model.trial import Trial
from holdfast.model.world import AuditEvent, ServiceSpec
from holdfast.model.world import ServiceTraits as ServiceTraits


class Rows(Struct, frozen=True):
    """The result of a query: values as JSON can hold them, dates as ISO text, decimals as numbers if exact."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    count: int
    """The number of all rows, including those that are not stored."""


class Service(Protocol):
    """A running service of one trial."""

    spec: ServiceSpec
    upstream: tuple[str, int] | str
    """Its real address: host and port, or the path of a Unix socket."""

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables for an agent that reaches it at `{host}:{port}`: patterns that the world fills in."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader, such as the version that replaces an image."""

    async def close(self) -> None: ...


@runtime_checkable
class MultiPortService(Service, Protocol):
    """A service that listens on several ports; `upstream` is the first."""

    def upstream_of(self, port: int) -> tuple[str, int] | str:
        """Return the real address of one of its ports."""


@runtime_checkable
class DumpableService(Service, Protocol):
    """A service whose content can be written to a file and loaded into another of its kind."""

    async def dump(self, path: Path) -> str:
        """Write its complete content, as its last operation; returns what had to be left out, in one line.

        Raises HarnessError if it cannot.
        """

    async def restore(self, path: Path) -> None:
        """Load what `dump` wrote into an unused service; raises HarnessError if it cannot."""


@runtime_checkable
class Database(Service, Protocol):
    """A service that speaks SQL."""

    async def query(self, sql: str, *, timeout_s: float, keep: int = 100) -> Rows:
        """Run one statement in a read-only transaction.

        Raises QueryFailed if the database refuses it, TimeoutError if it is too slow.
        """

    async def execute(self, sql: str) -> None:
        """Run the statements of a fixture; QueryFailed names the one that failed."""

    async def prepare(self, sql: str) -> None:
        """Test whether the statement could run; raises QueryFailed if not."""

    async def writes(self) -> Iterable[AuditEvent]:
        """Return the agent's writes since the snapshot, from the statement log and the row counters.

        The agent has ended: sessions that it left open are ended here.
        """

    async def mark(self) -> None:
        """Take the snapshot that writes count from."""


class Recorded(Struct, frozen=True, omit_defaults=True):
    """One request that reached a mock."""

    method: str
    path: str
    """The path without the query string."""
    query: str
    headers: tuple[tuple[str, str], ...]
    body: str
    status: int
    response: str
    ts: float
    cut: bool = False
    """Whether only the beginning of the body is stored."""
    unread: str = ""
    """Why the body cannot be decoded, for example an unknown content encoding. It is then stored as received."""


@runtime_checkable
class Mock(Service, Protocol):
    """A service that answers by its routes and records the requests."""

    @property
    def requests(self) -> Sequence[Recorded]:
        """The recorded requests in order of arrival; only the first ones, if there were too many."""

    @property
    def dropped(self) -> int:
        """The number of later requests, which are not stored."""


class ServiceKeeper(Protocol):
    """Keeps templates or a warm server for one service of a site, and gives every trial a separate service."""

    async def provide(self, trial: Trial, *, alone: bool) -> Service:
        """Return a fresh service; `alone` means that faults will hit the server itself, so no other trial may share
        it.
        """

    async def close(self) -> None: ...


class ServicePlace(Struct, frozen=True):
    """The folders and addresses that a keeper may use."""

    folder: Path
    """Its own folder on this machine, removed when the site is closed."""
    docker: bool = False
    """Whether it may start containers."""


class ServiceKind(Protocol):
    """A kind of service: a frozen dataclass whose fields are the keys that only its entries in `services` have.

    One plug-in of the family `services`; `traits` are a class variable.
    """

    traits: ClassVar[ServiceTraits]

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> ServiceKeeper:
        """Open the keeper of one service; references in the spec are replaced by values.

        UserError says what is missing and how to get it; NoServer that a container of its image could replace it.
        """


class ServiceContainer(Protocol):
    """A running container of an image, from which a kind makes its service."""

    spec: ServiceSpec
    socket_folder: Path
    """The folder with the sockets of its ports."""

    @property
    def alive(self) -> bool: ...

    def path(self, port: int) -> str:
        """Return the Unix socket of one of its ports."""

    async def close(self) -> None: ...


class WarmService(Service, Protocol):
    """A service that may have waited for its trial."""

    @property
    def alive(self) -> bool:
        """Whether its server still runs."""


@runtime_checkable
class ContainedKind(ServiceKind, Protocol):
    """A kind that knows more about a container of its image than its ports."""

    async def contained(self, running: ServiceContainer, notes: tuple[str, ...]) -> WarmService: ...


@runtime_checkable
class ReachableKind(ServiceKind, Protocol):
    """A kind that knows more about an external service than its address; `type: external` with one of its schemes."""

    def elsewhere(self, spec: ServiceSpec, url: SplitResult) -> Service: ...
