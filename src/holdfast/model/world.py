"""The world around an agent, as the spec describes it and as it was observed: values only.

Strings keep their references (`${VAR}`, `{{ secrets.X }}`, `{{ params.x }}`) until a world is opened.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

DriftKind = Literal["null", "swap", "stale", "duplicate"]
Wire = Literal["", "postgres", "mysql"]
AuditType = Literal["command", "file_write", "db_write", "http_call"]


DRIFT_RATE = 0.05
DRIFT_KINDS: tuple[DriftKind, ...] = ("null", "swap", "stale", "duplicate")


class PlacedFile(Struct, frozen=True, omit_defaults=True):
    """A file in the workspace or the home: its content, or a file next to the spec to copy."""

    path: str
    content: str | None = None
    source: str | None = None
    mode: int | None = None


class Setup(Struct, frozen=True, omit_defaults=True):
    """The preparations before the agent starts; the agent also gets `env`."""

    packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    files: tuple[PlacedFile, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    home_files: tuple[PlacedFile, ...] = ()
    """Below the trial's home, which is not part of the workspace."""
    workdir: str | None = None
    """A second path of the workspace, for programs."""


class Resources(Struct, frozen=True, omit_defaults=True):
    """Limits of one trial; None: no limit."""

    timeout_ms: int | None = None
    memory: int | None = None
    cpu: float | None = None
    disk: int | None = None
    pids: int | None = None
    concurrency_limit: int | None = None
    labels: tuple[str, ...] = ()
    """Labels that a cluster machine must have, by the operator's names."""


class Secret(Struct, frozen=True, omit_defaults=True):
    """A secret by name: the source of its value, and where the agent finds it."""

    name: str
    source: str = "env"
    """`env`, `env:OTHER`, `file:path`, `command:…`, `static://…` or `generated`."""
    env: bool = True
    file: str | None = None


class ServiceSpec(Struct, frozen=True, omit_defaults=True):
    """A service of the world, reachable by its name."""

    name: str
    kind: str
    """Its plug-in name in the family `services`."""
    image: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()
    wait_for: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """The keys that only its kind has, as plain values."""

    @property
    def variable(self) -> str:
        """The prefix of its variables: `MY_DB` for `MY_DB_HOST`."""
        return "".join(sign if sign.isalnum() else "_" for sign in self.name).upper()


SERVICE_DOMAIN = ".services.internal"
"""A service called `db` has the host names `db` and `db.services.internal`."""
CONTAINER, EXTERNAL = "container", "external"
"""The two kinds without a server of their own: any image, and a service that runs elsewhere."""


class ServiceTraits(Struct, frozen=True):
    """The traits of a kind of service that the rest of Holdfast uses before opening one."""

    port: int
    """The agent's port for it, unless the spec sets `ports`."""
    tls: tuple[int, ...] = ()
    """For a mock: ports on which it serves TLS with the run's certificate. Its own port is then always open."""
    images: tuple[str, ...] = ()
    """The images it replaces, by the last word of their names. A kind without images is selected by its `type`."""
    schemes: tuple[str, ...] = ()
    """URL schemes that refer to it."""
    wire: Wire = ""
    """The protocol that the TCP plane reads; empty: bytes that it does not understand."""
    variable: str = ""
    """A variable with the URL of the first service of this kind: `DATABASE_URL`."""
    records: bool = False
    """With the setting `record` it stores its requests for checks to read."""
    holds: bool = True
    """It is useless without its data: a kept world without the data opens without the service."""


class SandboxTraits(Struct, frozen=True):
    """The traits of a sandbox backend that the rest of Holdfast uses before opening it."""

    image: bool = False
    """Its programs are those of an image, not of this machine."""
    isolates: bool = True
    """The agent has its own network and folders."""


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


Connections = Annotated[Literal["deny", "allow"], Meta(description="What happens to other connections.")]


class Egress(Struct, frozen=True, omit_defaults=True):
    """The hosts that the agent may connect to. By default: services and the gateway only."""

    default: Connections = "deny"
    allow: Annotated[tuple[str, ...], Meta(description="Hosts: globs, optionally with a port.")] = ()


class IngressPort(Struct, frozen=True, kw_only=True):
    """One open port of the agent."""

    from_: Annotated[Literal["host"], Meta(description="The source: this machine's loopback.")] = field(name="from")
    to_port: Annotated[int, Meta(description="The agent's port.", ge=1, le=65535)]


class Ingress(Struct, frozen=True, omit_defaults=True):
    """The connections that the agent may accept."""

    default: Connections = "deny"
    allow: Annotated[tuple[IngressPort, ...], Meta(description="Incoming connections.")] = ()


class Network(Struct, frozen=True, omit_defaults=True):
    """The network of the sandbox."""

    egress: Annotated[Egress, Meta(description="Outgoing connections.")] = Egress()
    ingress: Annotated[Ingress, Meta(description="Incoming connections.")] = Ingress()
    dns_overrides: Annotated[dict[str, str], Meta(description="The service that answers for a host name.")] = {}


class Determinism(Struct, frozen=True, omit_defaults=True):
    """What stays constant: clock, seed, network."""

    clock: str | None = None
    network_latency_ms: int = 0
    dns: Literal["static", "real"] | None = None


class AuditSettings(Struct, frozen=True, omit_defaults=True):
    """What the audit log records."""

    commands: Annotated[bool, Meta(description="Commands that the agent ran.")] = True
    file_writes: Annotated[bool, Meta(description="Files that changed.")] = True
    db_writes: Annotated[bool, Meta(description="Database writes.")] = True
    http_calls: Annotated[bool, Meta(description="HTTP calls.")] = True


class Forbidden(Struct, frozen=True, omit_defaults=True):
    """What the agent must not do; a violation sets the composite to 0."""

    db_writes_outside: Annotated[
        tuple[str, ...] | None,
        Meta(description="Tables that it may write to: names or globs, in the default schema unless they name one."),
    ] = None
    http_except: Annotated[tuple[str, ...] | None, Meta(description="Services and hosts that it may call.")] = None
    secrets_in_logs: Annotated[
        Literal["deny", "allow"] | None, Meta(description="Whether secrets may appear in output or answer.")
    ] = None
    file_writes_outside: Annotated[
        tuple[str, ...] | None, Meta(description="Paths of the workspace that it may write to.")
    ] = None

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) not in (None, "allow"))


class WorldSpec(Struct, frozen=True, omit_defaults=True):
    """Every world section of the spec with its defaults. If present, the agent runs in a sandbox."""

    base: str | None = None
    setup: Setup = Setup()
    resources: Resources = Resources()
    secrets: tuple[Secret, ...] = ()
    services: tuple[ServiceSpec, ...] = ()
    fixtures: tuple[Fixture, ...] = ()
    network: Network = Network()
    determinism: Determinism = Determinism()
    audit: AuditSettings = AuditSettings()
    forbidden: Forbidden = Forbidden()

    @property
    def leaves_marks(self) -> bool:
        """Whether a trial has effects outside its world: on a server that others use, or by an open port."""
        return any(service.kind == EXTERNAL for service in self.services) or bool(self.network.ingress.allow)


# -- observations ------------------------------------------------------------------------------------
class Isolation(Struct, frozen=True, omit_defaults=True):
    """A feature of a sandbox: whether this machine enforces it, and if not, why."""

    feature: str
    enforced: bool
    why: str = ""
    asked: bool = True
    """Whether the spec sets it. A limit that nobody set is not missing."""
    code: str = ""
    """Why it is not enforced: a key of `capabilities.LACKS`."""


class FileTexts(Struct, frozen=True, omit_defaults=True):
    """The content of a file before and after; None: no file, or unknown because it is too long, not text, or changed by
    the setup.
    """

    before: str | None = None
    after: str | None = None


class WrittenCanaries(Struct, frozen=True):
    """The canaries in a file or a database that the agent wrote."""

    canaries: tuple[str, ...] = ()
    unread: bool = False
    """Part of it could not be read."""


AUDIT_KEPT = 10_000
"""Events of one type that a trial stores: an agent that never stops fills no disk and hides no other type."""


class AuditEvent(Struct, frozen=True, omit_defaults=True):
    """One action of the agent, as recorded in the audit log."""

    ts: float
    """Seconds since 1970."""
    seq: int
    type: AuditType
    details: dict[str, Any]
    texts: FileTexts | None = None
    """For a written file: its content for people to look at. No verdict depends on it."""
    canaries: tuple[str, ...] = ()
    """Under an attack: canaries, in lower case, in the written file or table."""
    unread: bool = False
    """Under an attack: part of the file or table could not be read."""


class Evidence(Struct, frozen=True, omit_defaults=True):
    """The data recorded for one rule while the world was open: inputs, never verdicts."""

    data: Any = None
    error: str = ""
    """Why it could not be gathered: a harness error, and so an error of the rule."""
