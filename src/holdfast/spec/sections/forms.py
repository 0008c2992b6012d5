"""Values with their own syntax: sizes, formats, references to code, aggregations."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

from holdfast import plugins
from holdfast.model.spec import Aggregation, ToolRef
from holdfast.reading.fields import Schema, ValueForm, about
from holdfast.reading.node import Node
from holdfast.reading.reader import BAD, Reader
from holdfast.reading.words import describe, suggest, suggest_name
from holdfast.spec.catalogue.schema import build_section_schema

_SOURCE = r"env|env:[A-Za-z_][A-Za-z0-9_]*|file:.+|command:.+"
_FROM = r"static://.*|generated"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"


def _read_source(reader: Reader, node: Node) -> Any:
    if node.kind == "text" and re.fullmatch(_SOURCE, node.text):
        return node.text
    takes = 'source takes env, "env:OTHER", "file:path" or "command:…"'
    hint = 'source: "env:OTHER" reads the variable OTHER, source: env the one of the secret\'s own name'
    if node.kind == "text" and re.fullmatch(_FROM, node.text):
        hint = f"write {_format_key('from', node.text)}"
    elif node.kind == "text" and re.fullmatch(_VARIABLE, node.text):
        hint = f"write {_format_key('source', f'env:{node.text}')}"
    return _report_bad_source(reader, node, takes, hint)


def _read_from(reader: Reader, node: Node) -> Any:
    if node.kind == "text" and re.fullmatch(_FROM, node.text):
        return node.text
    takes = 'from takes generated or "static://value"'
    hint = 'from: generated makes one up; a value that is somewhere is source: "env:OTHER" or source: "file:path"'
    if node.kind == "text" and re.fullmatch(_SOURCE, node.text):
        hint = f"write {_format_key('source', node.text)}"
    return _report_bad_source(reader, node, takes, hint)


def _report_bad_source(reader: Reader, node: Node, takes: str, hint: str) -> Any:
    bad = reader.report(node, f"{takes}, found {describe(node)}", hint=hint, code="bad-value")
    return node.text if node.kind == "text" else bad  # otherwise it would be a secret without a source


def _format_key(key: str, value: str) -> str:
    return f"{key}: {value}" if re.fullmatch(_VARIABLE, value) else f'{key}: "{value}"'


SecretSource: TypeAlias = Annotated[
    str, ValueForm(_read_source, lambda: {"type": "string", "pattern": f"^({_SOURCE})$"}, "text")
]
SecretFrom: TypeAlias = Annotated[
    str, ValueForm(_read_from, lambda: {"type": "string", "pattern": f"^({_FROM})$"}, "text")
]


_SIZE = r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>[kKMGT]i?)?B?"
_UNITS = {"": 1} | {letter + i: base**n for i, base in (("", 1000), ("i", 1024)) for n, letter in enumerate("kmgt", 1)}
_TOO_MUCH = 2.0**63
"""More than any machine has."""
CODE = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"


# -- sizes --------------------------------------------------------------------------------------
def _read_size(reader: Reader, node: Node) -> Any:
    if node.kind == "int" and node.value >= 0:
        return node.value
    if node.kind == "text" and (size := re.fullmatch(_SIZE, node.text)):
        value = float(size["number"]) * _UNITS[(size["unit"] or "").lower()]
        if value < _TOO_MUCH:
            return int(value)
    return reader.report_type(node, "a size such as 512Mi or 2Gi")


Size: TypeAlias = Annotated[
    int, ValueForm(_read_size, lambda: {"type": ["string", "integer"]}, "bytes, or a size such as 2Gi", example="1Gi")
]


# -- formats of reports -------------------------------------------------------------------------
def list_formats() -> list[str]:
    """Return the values of `output.format`: every reporter, and the terminal, for which no file is written."""
    return [*plugins.list_names("reporters"), "terminal"]


def _read_format(reader: Reader, node: Node) -> Any:
    if node.kind == "text" and node.text in list_formats():
        return node.text
    return reader.report_option(node, list_formats())


_OURS = " | ".join((*plugins.BUILT_IN["reporters"], "terminal"))
Format: TypeAlias = Annotated[
    str, ValueForm(_read_format, lambda: {"enum": list_formats()}, f"{_OURS}, or a plug-in's reporter", example="html")
]


# -- references to code -------------------------------------------------------------------------
def _read_code(reader: Reader, node: Node) -> Any:
    if node.kind == "text" and re.fullmatch(CODE, node.text):
        return node.text
    hint = "module:function, as in my_agent:search"
    return reader.report_type(node, "module:attribute", hint=hint, code="bad-reference")


_CODE_SCHEMA: Schema = {"type": "string", "pattern": f"^{CODE}$"}
Code: TypeAlias = Annotated[str, ValueForm(_read_code, lambda: _CODE_SCHEMA, "module:attribute")]


class ToolKeys(Struct, frozen=True):
    """A tool under another name than its function's."""

    callable: Annotated[Code, about("module:function")]
    name: Annotated[str | None, about("Its name in faults and rules.")] = None


def _read_tool(reader: Reader, node: Node) -> Any:
    if node.kind != "map":
        read = _read_code(reader, node)
        return BAD if read is BAD else ToolRef(read)
    tool = reader.read_section(ToolKeys, node)
    return BAD if tool is BAD else ToolRef(tool.callable, tool.name)


def _build_tool_schema() -> Schema:
    return {"anyOf": [_CODE_SCHEMA, build_section_schema(ToolKeys)]}


Tool: TypeAlias = Annotated[ToolRef, ValueForm(_read_tool, _build_tool_schema, "module:function, or {name, callable}")]


def _read_tools(reader: Reader, node: Node) -> Any:
    if node.kind == "list":
        return reader.read(tuple[Tool, ...], node)
    read = _read_tool(reader, node)
    return BAD if read is BAD else (read,)


OneOrMoreTools: TypeAlias = Annotated[
    tuple[ToolRef, ...],
    ValueForm(
        _read_tools,
        lambda: {"anyOf": [*_build_tool_schema()["anyOf"], {"type": "array", "items": _build_tool_schema()}]},
        "module:function, {name, callable}, or a list of them",
    ),
]


# -- how replicas combine -----------------------------------------------------------------------
_WORDS = ("all", "any", "majority", "mean")


def _read_aggregation(reader: Reader, node: Node) -> Any:
    if node.kind == "text" and node.text in _WORDS:
        return Aggregation(node.text)  # type: ignore[arg-type]  # one of _WORDS
    if node.kind == "map" and len(node.pairs) == 1:
        name, (key, value) = next(iter(node.pairs.items()))
        if name == "at_least":
            return _read_counted(reader, Annotated[int, Meta(ge=1)], "at_least", value)
        if name == "rate":
            return _read_counted(reader, Annotated[float, Meta(ge=0, le=1)], "rate", value)
        meant, hint = suggest(name, ("at_least", "rate"))
        return reader.report(key, "unknown key", hint=hint, code="unknown-key", suggestion=meant)
    message = f"expected all, any, majority, mean, {{at_least: k}} or {{rate: 0.8}}, found {describe(node)}"
    hint = suggest_name(node.text, _WORDS) if node.kind == "text" else ""
    return reader.report(node, message, hint=hint, code="unknown-value")


def _read_counted(reader: Reader, hint: Any, kind: Any, node: Node) -> Any:
    value = reader.read(hint, node)
    return BAD if value is BAD else Aggregation(kind, float(value))


def _build_aggregation_schema() -> Schema:
    at_least = {"type": "object", "properties": {"at_least": {"type": "integer", "minimum": 1}}}
    rate = {"type": "object", "properties": {"rate": {"type": "number", "minimum": 0, "maximum": 1}}}
    closed = [{**s, "required": list(s["properties"]), "additionalProperties": False} for s in (at_least, rate)]
    return {"anyOf": [{"enum": list(_WORDS)}, *closed]}


Aggregate: TypeAlias = Annotated[
    Aggregation,
    ValueForm(
        _read_aggregation, _build_aggregation_schema, "all | any | majority | mean | {at_least: k} | {rate: 0.8}"
    ),
]
