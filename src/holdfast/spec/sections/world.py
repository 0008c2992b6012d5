"""The world around an agent, in the scenario format."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Struct, field

from holdfast import service_kinds
from holdfast.errors import PluginError
from holdfast.model.world import CONTAINER, ServiceSpec
from holdfast.reading.durations import Duration, Written
from holdfast.reading.fields import about, list_key_names
from holdfast.reading.node import Node, build_absent
from holdfast.reading.reader import BAD, Bad, Reader
from holdfast.reading.words import describe, suggest_name
from holdfast.spec.rules.variants import Choice, ChosenVariant, read_settings
from holdfast.spec.sections.forms import SecretFrom, SecretSource, Size
from holdfast.spec.sections.run import SEED

_NAME = about("Its name.", pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")
Label = Annotated[str, about("A name of Ray's resources.", pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]


class FileEntry(Struct, frozen=True, kw_only=True):
    """A file placed in the workspace or the home."""

    at: Node
    path: Annotated[str, about("A path in the workspace or the home folder.", min_length=1)]
    content: Annotated[str | None, about("The content.")] = None
    source: Annotated[str | None, about("A file next to the spec to copy.", min_length=1)] = None
    mode: Annotated[str | None, about('Permissions, as text like "0755".', pattern="^[0-7]{3,4}$")] = None


class SetupSection(Struct, frozen=True, kw_only=True):
    """What is prepared before the agent starts."""

    at: Node = field(default_factory=build_absent)
    packages: Annotated[tuple[str, ...], about("Packages to install.")] = ()
    commands: Annotated[tuple[str, ...], about("Commands, in order.")] = ()
    files: Annotated[tuple[FileEntry, ...], about("Files to place.")] = ()
    home_files: Annotated[
        tuple[FileEntry, ...], about("Files to place below $HOME, such as the agent's settings.")
    ] = ()
    env: Annotated[dict[str, Written], about("Environment of setup and agent.")] = {}
    workdir: Annotated[
        str | None, about("A second path of the workspace, for programs that expect it.", examples=["/app"])
    ] = None


class ResourcesSection(Struct, frozen=True, kw_only=True):
    """Limits of a trial."""

    at: Node = field(default_factory=build_absent)
    timeout: Annotated[Duration | None, about("The time limit of the complete trial.")] = None
    memory: Annotated[Size | None, about("The memory that all processes of the agent may use together.")] = None
    cpu: Annotated[float | None, about("The number of cores.", gt=0)] = None
    disk: Annotated[Size | None, about("The space for files that the agent writes.")] = None
    pids: Annotated[int | None, about("The maximum number of processes.", ge=1)] = None
    concurrency_limit: Annotated[int | None, about("Trials in parallel.", ge=1)] = None
    labels: Annotated[
        tuple[Label, ...], about("Labels that a machine of a cluster must have (--on ray): gpu, docker or your own.")
    ] = ()


class SecretScope(Struct, frozen=True, kw_only=True):
    """Where the agent finds a secret."""

    env: Annotated[bool, about("Whether it is in the agent's environment.")] = True
    file: Annotated[str | None, about("A file in the workspace that contains it.", min_length=1)] = None


class SecretEntry(Struct, frozen=True, kw_only=True):
    """A secret of the sandbox."""

    at: Node
    name: Annotated[str, about("Its name.", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
    source: Annotated[
        SecretSource | None, about('Where the value is: env, "env:OTHER", "file:path" or "command:…".')
    ] = None
    from_: Annotated[SecretFrom | None, about('A new value: generated, or "static://value".')] = field(
        default=None, name="from"
    )
    scope: Annotated[SecretScope, about("Where the agent finds it.")] = SecretScope()


class ServiceKeys(Struct, frozen=True, kw_only=True):
    """Keys of every service."""

    name: Annotated[str, _NAME]
    type: Annotated[str, about("The kind of service.", min_length=1)] = CONTAINER
    ports: Annotated[tuple[Annotated[int, about("", ge=1, le=65535)], ...], about("The ports that it listens on.")] = ()


class ImageKeys(Struct, frozen=True, kw_only=True):
    """An image, served by a server of this machine or by a container."""

    image: Annotated[str, about("The image of a container.", min_length=1)]
    env: Annotated[dict[str, Written], about("Its environment.")] = {}
    wait_for: Annotated[str | None, about("A command that succeeds when the service is ready.", min_length=1)] = None


class FixtureEntry(Struct, frozen=True, kw_only=True):
    """Data for the sandbox, loaded in order when the services are ready."""

    at: Node
    type: Annotated[Literal["sql", "directory", "files", "git_repo", "drift"], about("The kind of data.")]
    service: Annotated[str | None, about("For sql and drift: the service.", min_length=1)] = None
    sql: Annotated[str | None, about("For sql: the statements.", min_length=1)] = None
    file: Annotated[str | None, about("For sql: a file with statements.", min_length=1)] = None
    source: Annotated[str | None, about("For directory: a folder next to the spec.", min_length=1)] = None
    path: Annotated[str | None, about("A path in the workspace.", min_length=1)] = None
    files: Annotated[tuple[FileEntry, ...], about("For files: the files to write.")] = ()
    url: Annotated[str | None, about("For git_repo: the repository.", min_length=1)] = None
    branch: Annotated[str | None, about("For git_repo: the branch.", min_length=1)] = None
    depth: Annotated[int | None, about("For git_repo: the number of commits.", ge=1)] = None
    table: Annotated[str | None, about("For drift: the table.", min_length=1)] = None
    rate: Annotated[float | None, about("For drift: the share of damaged rows.", ge=0, le=1)] = None
    kinds: Annotated[
        tuple[Literal["null", "swap", "stale", "duplicate"] | None, ...], about("For drift: the kinds of damage.")
    ] = ()


class DeterminismSection(Struct, frozen=True, kw_only=True):
    """What is kept constant: clock, seed, network."""

    at: Node = field(default_factory=build_absent)
    clock: Annotated[str | None, about("The start of the clock, which then runs.", min_length=1)] = None
    seed: Annotated[int | None, SEED] = None
    network_latency: Annotated[Duration | None, about("The delay of each connection.")] = None
    dns: Annotated[Literal["static", "real"] | None, about("How host names resolve.")] = None


class ServiceEntry(Struct, frozen=True):
    """A service as read, with the position that later checks need."""

    at: Node
    type: str
    spec: ServiceSpec

    @property
    def name(self) -> str:
        return self.spec.name


def read_service(reader: Reader, node: Node) -> ServiceEntry | Bad:
    """Read one entry of `services`."""
    if node.kind != "map":
        return reader.report_type(node, "a map")
    common = reader.read_keys(ServiceKeys, node)
    if isinstance(common, Bad) or (node.has("type") and "type" not in common):
        return BAD
    kind = common.pop("type", CONTAINER)
    image = _read_image(reader, node) if kind == CONTAINER else {}
    choice = BAD if isinstance(image, Bad) else _choose_plugin(reader, kind, image, node)
    if isinstance(choice, Bad) or isinstance(image, Bad):
        return BAD
    chosen = _read_own_keys(reader, kind, choice, node)
    if isinstance(chosen, Bad):
        return BAD
    return ServiceEntry(node, kind, ServiceSpec(kind=choice.name, settings=chosen.settings, **common, **image))


def _read_image(reader: Reader, node: Node) -> dict[str, Any] | Bad:
    if not node.has("image"):
        return reader.report_missing(node, "image", hint="or is it type: http_mock?")
    keys: dict[str, Any] | Bad = reader.read_keys(ImageKeys, node)
    return keys


def _choose_plugin(reader: Reader, kind: str, image: dict[str, Any], node: Node) -> Choice | Bad:
    """Return the plug-in of the entry, by its type or its image."""
    place = node.get("type" if node.has("type") else "image")
    try:
        name = service_kinds.find_by_image(image["image"]) if image else kind
        plugin = service_kinds.find(name)
    except PluginError as broken:
        return reader.report(place, str(broken), code="broken-plugin")
    if plugin is None or (plugin.traits.images and not image):
        types = service_kinds.list_types()
        message = f"expected one of {', '.join(types)}, found {describe(place)}"
        hint = suggest_name(kind, types) if plugin is None else f"write image: {plugin.traits.images[0]} instead"
        return reader.report(place, message, hint=hint, code="unknown-value")
    return Choice(name, plugin)


def _read_own_keys(reader: Reader, kind: str, choice: Choice, node: Node) -> ChosenVariant | Bad:
    """Return the keys of its kind; the message about a key of another kind names that kind."""
    common = [*list_key_names(ServiceKeys), *(list_key_names(ImageKeys) if kind == CONTAINER else ())]
    allowed = {*common, *list_key_names(choice.type)}
    misplaced = {key: home for key in node.pairs if key not in allowed and (home := _find_home_type(key))}
    for key, home in misplaced.items():
        reader.report_conflict(node.get_key(key), f"is for type: {home}")
    return read_settings(reader, choice, node, [*common, *misplaced])


def _find_home_type(key: str) -> str:
    """Return the type whose services have that key; empty if none has."""
    if key in list_key_names(ImageKeys):
        return CONTAINER
    try:
        kinds = [(name, service_kinds.find(name)) for name in service_kinds.list_types()]
    except PluginError:  # the plug-in cannot be loaded: then the key is simply unknown
        return ""
    return next((name for name, plugin in kinds if plugin is not None and key in list_key_names(plugin)), "")
