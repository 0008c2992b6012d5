"""Reads a map whose type or mode decides which other keys it may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from msgspec import Struct

from holdfast import plugins
from holdfast.errors import PluginError
from holdfast.model.codec import to_builtins
from holdfast.protocols.check import ValidatingPlugin
from holdfast.reading.fields import get_keys, list_key_names
from holdfast.reading.node import Node
from holdfast.reading.reader import BAD, Bad, Reader
from holdfast.reading.words import join_names, suggest_name


class Choice(Struct, frozen=True):
    """A named kind of check or fault, and the type that declares its settings."""

    name: str
    type: type


class ChosenVariant(Struct, frozen=True):
    """The kind, its settings as written, and the object they make."""

    choice: Choice
    settings: dict[str, Any]
    plugin: Any


def choose(
    reader: Reader, node: Node, selector: str, registry: str, elsewhere: Mapping[str, str] | None = None
) -> Choice | Bad:
    """Return the plug-in of a family that the map's selector names.

    `elsewhere` has names from other tools, and what to write here.
    """
    if not node.has(selector):
        report_misspelt_selector(reader, selector, node, ())
        return reader.report_missing(node, selector, hint=f"one of {join_names(plugins.list_names(registry))}")
    value = node.get(selector)
    if value.kind != "text":
        return reader.report_type(value, "a name")
    try:
        plugin = plugins.find(registry, value.text)
    except PluginError as broken:
        return reader.report(value, str(broken), code="broken-plugin")
    if plugin is None:
        hint = (elsewhere or {}).get(value.text) or suggest_name(value.text, plugins.list_names(registry))
        return reader.report(value, f"unknown {selector} {value.text[:60]!r}", hint=hint, code="unknown-value")
    return Choice(value.text, plugin)


def report_misspelt_selector(reader: Reader, selector: str, node: Node, known: Iterable[str]) -> None:
    """Report the key that was probably meant to be the selector."""
    # Only keys that nothing else explains are suspects: `modes` is one for `mode`, but a known key that looks similar
    # is not.
    for key in get_close_matches(selector, [key for key in node.pairs if key not in known], 1, 0.75):
        hint = f"did you mean {selector}?"
        reader.report(node.get_key(key), "unknown key", hint=hint, code="unknown-key", suggestion=selector)


def read_settings(
    reader: Reader, choice: Choice, node: Node, common: Iterable[str], synonyms: Mapping[str, str] | None = None
) -> ChosenVariant | Bad:
    """Return the kind's own keys; `common` are other keys that the map may have."""
    reader.report_unknown(
        node, [*list_key_names(choice.type), *common], label=f"{choice.name} takes", synonyms=synonyms
    )
    # An optional key that cannot be read keeps its default, which is fine for a section. A rule or a fault with another
    # setting than the written one would judge or do something else, so any error here makes it unusable.
    before = len(reader.problems)
    values = reader.read_keys(choice.type, node)
    if isinstance(values, Bad) or any(p.severity == "error" for p in reader.problems[before:]):
        return BAD
    plugin = _make(reader, choice, values, node)
    if isinstance(plugin, Bad):
        return plugin
    keys = {field.name: field.key for field in get_keys(choice.type)}
    plain = {keys[name]: _convert_tuples(to_builtins(value)) for name, value in values.items()}
    return ChosenVariant(choice, plain, plugin)


def _make(reader: Reader, choice: Choice, values: dict[str, Any], node: Node) -> Any:
    try:
        plugin = choice.type(**values)
    except (TypeError, ValueError) as refused:
        return reader.report(node, str(refused))
    if isinstance(plugin, ValidatingPlugin):
        wrong = list(plugin.problems())
        for field, message in wrong:
            reader.report(node.find(field), message, code="bad-setting")
        if wrong:
            return BAD
    return plugin


def _convert_tuples(value: Any) -> Any:
    """Return the value as JSON would return it: lists, no tuples."""
    if isinstance(value, list | tuple):
        return [_convert_tuples(item) for item in value]
    if isinstance(value, dict):
        return {key: _convert_tuples(item) for key, item in value.items()}
    return value
