"""A service of the world: its kind, and the keys that only this kind has."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from holdfast import service_kinds
from holdfast.errors import PluginError
from holdfast.model.world import CONTAINER, ServiceSpec
from holdfast.reading.fields import key_names
from holdfast.reading.node import Node
from holdfast.reading.reader import BAD, Bad, Reader, join
from holdfast.reading.words import found, near_hint
from holdfast.spec.sections.world import ImageKeys, ServiceKeys
from holdfast.spec.variants import Choice, Chosen, settings


class ServiceEntry(Struct, frozen=True):
    """A service as read, with the place that later questions ask about."""

    at: Node
    type: str
    spec: ServiceSpec

    @property
    def name(self) -> str:
        return self.spec.name


def read_service(reader: Reader, node: Node, path: str) -> ServiceEntry | Bad:
    """One entry of `services`."""
    if node.kind != "map":
        return reader.error(node, path, f"expected a map, found {found(node)}", code="wrong-type")
    common = reader.keys(ServiceKeys, node, path)
    if isinstance(common, Bad) or (node.has("type") and "type" not in common):
        return BAD
    kind = common.pop("type", CONTAINER)
    image = _image(reader, node, path) if kind == CONTAINER else {}
    choice = BAD if isinstance(image, Bad) else _choice(reader, kind, image, node, path)
    if isinstance(choice, Bad) or isinstance(image, Bad):
        return BAD
    own = _own(reader, kind, choice, node, path)
    if isinstance(own, Bad):
        return BAD
    return ServiceEntry(node, kind, ServiceSpec(kind=choice.name, settings=own.settings, **common, **image))


def _image(reader: Reader, node: Node, path: str) -> dict[str, Any] | Bad:
    if not node.has("image"):
        hint = "or is it type: http_mock?"
        return reader.error(node, join(path, "image"), "missing", hint=hint, code="missing-key")
    keys: dict[str, Any] | Bad = reader.keys(ImageKeys, node, path)
    return keys


def _choice(reader: Reader, kind: str, image: dict[str, Any], node: Node, path: str) -> Choice | Bad:
    """The plug-in that the entry asks for, by its type or its image."""
    place, where = node.get("type" if node.has("type") else "image"), join(path, "type")
    try:
        name = service_kinds.of_image(image["image"]) if image else kind
        plugin = service_kinds.find(name)
    except PluginError as broken:
        return reader.error(place, where, str(broken), code="broken-plugin")
    if plugin is None or (plugin.traits.images and not image):
        known = service_kinds.types()
        message = f"expected one of {', '.join(known)}, found {found(place)}"
        hint = near_hint(kind, known) if plugin is None else f"write image: {plugin.traits.images[0]} instead"
        return reader.error(place, where, message, hint=hint, code="unknown-value")
    return Choice(name, plugin)


def _own(reader: Reader, kind: str, choice: Choice, node: Node, path: str) -> Chosen | Bad:
    """The keys of its kind; one that another kind has is told with that."""
    beside = [*key_names(ServiceKeys), *(key_names(ImageKeys) if kind == CONTAINER else ())]
    mine = {*beside, *key_names(choice.type)}
    foreign = {key: home for key in node.pairs if key not in mine and (home := _home(key))}
    for key, home in foreign.items():
        reader.error(node.key(key), join(path, key), f"is for type: {home}", code="conflict")
    return settings(reader, choice, node, path, [*beside, *foreign])


def _home(key: str) -> str:
    """The type whose services have that key; empty if none has."""
    if key in key_names(ImageKeys):
        return CONTAINER
    try:
        kinds = [(name, service_kinds.find(name)) for name in service_kinds.types()]
    except PluginError:  # one that is not asked for: then it is just an unknown key
        return ""
    return next((name for name, plugin in kinds if plugin is not None and key in key_names(plugin)), "")
