"""Facts about services by their kind. The kinds are the plug-ins of the family `services`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import ValidationError

from holdfast import plugins
from holdfast.errors import PluginError
from holdfast.model.world import CONTAINER, EXTERNAL, ServiceSpec, ServiceTraits
from holdfast.reading.fields import convert_settings

if TYPE_CHECKING:
    from holdfast.protocols.service import ServiceKind


def find(name: str) -> type[ServiceKind] | None:
    """Return the kind of that name; raise PluginError if it cannot be one."""
    kind: Any = plugins.find("services", name)
    return kind  # type: ignore[no-any-return]


def get_traits(spec: ServiceSpec) -> ServiceTraits:
    """Return the traits of the service's kind."""
    return _get_kind(spec.kind).traits


def get_protocol_traits(spec: ServiceSpec) -> ServiceTraits:
    """Return the traits of the protocol that a service speaks; for an external service, by its URL."""
    name = find_by_url(get_url(spec)) if spec.kind == EXTERNAL else None
    return _get_kind(name or spec.kind).traits


def get_port(spec: ServiceSpec) -> int:
    """Return the port that the agent uses: the first of the service's ports, otherwise the default of its kind."""
    return spec.ports[0] if spec.ports else get_traits(spec).port


def get_url(spec: ServiceSpec) -> str:
    """Return the URL of an external service; empty if it has none."""
    return str(spec.settings.get("url", ""))


def build_kind(spec: ServiceSpec) -> ServiceKind:
    """Build the kind of a service from its settings; raise PluginError if they do not fit."""
    kind = _get_kind(spec.kind)
    try:
        return kind(**convert_settings(kind, spec.settings))
    except (ValidationError, TypeError, ValueError) as broken:
        raise PluginError(
            f"service {spec.name} cannot be created from its settings: {broken}", code="plugin-broken"
        ) from broken


@cache
def find_by_image(image: str) -> str:
    """Return the kind of an image: `docker.io/library/postgres:16` is `postgres`; an unknown image is a container."""
    word = image.rpartition("/")[2].partition("@")[0].partition(":")[0]
    return next((name for name, traits in _list_kinds() if word in traits.images), CONTAINER)


@cache
def find_by_url(url: str) -> str | None:
    """Return the kind for a URL, by its scheme; None if there is none."""
    scheme = get_scheme(url)
    return next((name for name, traits in _list_kinds() if scheme in traits.schemes), None)


def get_scheme(url: str) -> str:
    """Return the scheme without its driver: `mysql` for `mysql+pymysql://…`."""
    return url.partition(":")[0].partition("+")[0].lower()


def list_types() -> list[str]:
    """Return every kind that a spec can name as a `type`."""
    return [name for name in plugins.list_names("services") if not _get_kind(name).traits.images]


def format_recorders() -> str:
    """Return the kinds that can record their requests, joined with "or"."""
    return " or ".join(name for name in list_types() if _get_kind(name).traits.records)


def _list_kinds() -> Iterator[tuple[str, ServiceTraits]]:
    """Yield the kinds, built-in ones first: most specs use no others, and installed ones are slow to find."""
    built_in = plugins.BUILT_IN["services"]
    yield from ((name, _get_kind(name).traits) for name in built_in)
    yield from ((name, _get_kind(name).traits) for name in plugins.list_names("services") if name not in built_in)


def _get_kind(name: str) -> type[ServiceKind]:
    kind = find(name)
    if kind is None:
        raise PluginError(f"there is no kind of service called {name!r}", code="plugin-broken")
    return kind
