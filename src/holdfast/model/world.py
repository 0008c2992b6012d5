"""The world around an agent, as the spec asks for it and as it was found: values only.

Strings keep their references (`${VAR}`, `{{ secrets.X }}`, `{{ params.x }}`) until a world is opened.
"""

from typing import Any, Literal

from msgspec import Struct, field

DriftKind = Literal["null", "swap", "stale", "duplicate"]
Wire = Literal["", "postgres", "mysql"]
AuditType = Literal["command", "file_write", "db_write", "http_call"]


DRIFT_RATE = 0.05
DRIFT_KINDS: tuple[DriftKind, ...] = ("null", "swap", "stale", "duplicate")


class PlacedFile(Struct, frozen=True, omit_defaults=True):
    """A file put into the workspace or the home: its content, or a file beside the spec that is copied."""

    path: str
    content: str | None = None
    source: str | None = None
    mode: int | None = None


class Setup(Struct, frozen=True, omit_defaults=True):
    """What is prepared before the agent starts; `env` reaches the agent too."""

    packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    files: tuple[PlacedFile, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    home_files: tuple[PlacedFile, ...] = ()
    """Below the home of the trial, which is no part of the workspace."""
    workdir: str | None = None
    """A second path at which programs find the workspace."""


class Resources(Struct, frozen=True, omit_defaults=True):
    """Limits of one trial; None: none."""

    timeout_ms: int | None = None
    memory: int | None = None
    cpu: float | None = None
    disk: int | None = None
    pids: int | None = None
    concurrency_limit: int | None = None
    labels: tuple[str, ...] = ()
    """What the machine of a cluster must have, by the names that its operator gave."""


class Secret(Struct, frozen=True, omit_defaults=True):
    """A secret by name: where its value comes from, and where the agent finds it."""

    name: str
    source: str = "env"
    """`env`, `env:OTHER`, `file:path`, `command:…`, `static://…` or `generated`."""
    env: bool = True
    file: str | None = None


class ServiceSpec(Struct, frozen=True, omit_defaults=True):
    """A service of the world, reached by its name."""

    name: str
    kind: str
    """Its name among the plug-ins of the family `services`."""
    image: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()
    wait_for: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """The keys that only its kind has, in plain values."""

    @property
    def variable(self) -> str:
        """What its variables begin with: `MY_DB` of `MY_DB_HOST`."""
        return "".join(sign if sign.isalnum() else "_" for sign in self.name).upper()


CONTAINER, EXTERNAL = "container", "external"
"""The two kinds that are no server of their own: any image at all, and whatever runs elsewhere."""


class ServiceTraits(Struct, frozen=True):
    """What the rest of Holdfast has to know of a kind of service before one of it is opened."""

    port: int
    """Where the agent finds it, unless the spec names `ports`."""
    tls: tuple[int, ...] = ()
    """Of a mock: ports on which it answers by TLS, with the run's certificate. Its own port is then always open."""
    images: tuple[str, ...] = ()
    """What it stands in for, by the last word of an image's name. A kind without images is asked for by its `type`."""
    schemes: tuple[str, ...] = ()
    """Of URLs that lead to one."""
    wire: Wire = ""
    """The protocol that the TCP plane reads along; empty: bytes that it does not understand."""
    variable: str = ""
    """The agent finds the URL of the first one under this name, too: `DATABASE_URL`."""
    records: bool = False
    """With the setting `record` it keeps the requests that it got, for checks to read."""
    holds: bool = True
    """It is nothing without what it held: a kept world without that opens without the service."""


class SandboxTraits(Struct, frozen=True):
    """What the rest of Holdfast has to know of a sandbox backend before it is opened."""

    image: bool = False
    """Its programs are those of an image: this machine's own are not there."""
    isolates: bool = True
    """The agent has a network and folders of its own."""


class Fixture(Struct, frozen=True, omit_defaults=True):
    """Data put into the world, in order, after the services are ready."""

    type: Literal["sql", "directory", "files", "git_repo", "drift"]
    service: str | None = None
    sql: str | None = None
    file: str | None = None
    source: str | None = None
    path: str = "."
    files: tuple[PlacedFile, ...] = ()
    url: str | None = None
    branch: str | None = None
    depth: int | None = None
    table: str | None = None
    rate: float = DRIFT_RATE
    kinds: tuple[DriftKind, ...] = DRIFT_KINDS


class WayIn(Struct, frozen=True):
    """A port of the agent's that may be reached from outside."""

    source: str
    port: int


class Network(Struct, frozen=True, omit_defaults=True):
    """Where the agent may connect to, and who may connect to it. The default: services and the gateway only."""

    egress: Literal["deny", "allow"] = "deny"
    allow: tuple[str, ...] = ()
    ingress: Literal["deny", "allow"] = "deny"
    ways_in: tuple[WayIn, ...] = ()
    dns_overrides: dict[str, str] = field(default_factory=dict)
    """Host name to the name of a service."""


class Determinism(Struct, frozen=True, omit_defaults=True):
    """What is kept constant: clock, seed, network."""

    clock: str | None = None
    network_latency_ms: int = 0
    dns: Literal["static", "real"] | None = None


class Audited(Struct, frozen=True, omit_defaults=True):
    """What the audit log records."""

    commands: bool = True
    file_writes: bool = True
    db_writes: bool = True
    http_calls: bool = True


class Forbidden(Struct, frozen=True, omit_defaults=True):
    """What the agent must not do; None: no such rule."""

    db_writes_outside: tuple[str, ...] | None = None
    http_except: tuple[str, ...] | None = None
    secrets_in_logs: bool = False
    file_writes_outside: tuple[str, ...] | None = None

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) not in (None, False))


class WorldSpec(Struct, frozen=True, omit_defaults=True):
    """Every world section of the spec, with its defaults. Its presence means: the agent runs in a sandbox."""

    base: str | None = None
    setup: Setup = Setup()
    resources: Resources = Resources()
    secrets: tuple[Secret, ...] = ()
    services: tuple[ServiceSpec, ...] = ()
    fixtures: tuple[Fixture, ...] = ()
    network: Network = Network()
    determinism: Determinism = Determinism()
    audit: Audited = Audited()
    forbidden: Forbidden = Forbidden()

    @property
    def leaves_marks(self) -> bool:
        """Whether a trial is felt outside of its world: by a server that is not its own, or by who comes in to it."""
        return any(service.kind == EXTERNAL for service in self.services) or bool(self.network.ways_in)

    def service(self, name: str) -> ServiceSpec:
        return next(s for s in self.services if s.name == name)


# -- what is found ------------------------------------------------------------------------------
class Isolation(Struct, frozen=True, omit_defaults=True):
    """A feature of a sandbox: whether it is enforced on this machine, and if not, why."""

    feature: str
    enforced: bool
    why: str = ""
    asked: bool = True
    """False: a limit that nobody set, so that it is no lack."""
    code: str = ""
    """Why it is not enforced: a key of `capabilities.LACKS`."""


class FileTexts(Struct, frozen=True, omit_defaults=True):
    """What stood in a file; None: there was none, or it is not known: too long, no text, or changed by the setup."""

    before: str | None = None
    after: str | None = None


class WrittenCanaries(Struct, frozen=True):
    """What of an attack is in a file or a database that was written."""

    canaries: tuple[str, ...] = ()
    unread: bool = False
    """Some of it could not be read."""


AUDIT_KEPT = 10_000
"""Events of one type that a trial keeps: an agent that never stops fills no disk, and hides no other type."""


class AuditEvent(Struct, frozen=True, omit_defaults=True):
    """One thing that the agent did, as the audit log has it."""

    ts: float
    """Seconds since 1970."""
    seq: int
    type: AuditType
    details: dict[str, Any]
    texts: FileTexts | None = None
    """Of a file that was written: for people to look at. Nothing is judged by them."""
    canaries: tuple[str, ...] = ()
    """In an attack: canaries, in small letters, in the file or the table that was written."""
    unread: bool = False
    """In an attack: some of the file or the table could not be read."""


class Evidence(Struct, frozen=True, omit_defaults=True):
    """What was recorded for one rule while the world was alive: inputs, never verdicts."""

    data: Any = None
    error: str = ""
    """Why it could not be gathered: our failure, and so an error of the rule."""
