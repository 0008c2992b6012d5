"""Drift of structure: other field names, another format. Each function returns the very text if nothing fits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any

from holdfast.faults.json_text import dump, dump_like, parse
from holdfast.faults.renamed_field import renamed

_FENCED = re.compile(r"(?s)(.*?```(?:json)?[ \t]*\n)(.*?)(\n```.*)")


def rename_fields(text: str, severity: str, rng: Random) -> str:
    """JSON, also a fenced block of it, with one field renamed (subtle), half of them (moderate), or all."""
    before, body, after = _json_body(text)
    data = parse(body)
    known = _field_names(data)
    if not known:
        return text
    share = {"subtle": 1, "moderate": (len(known) + 1) // 2}.get(severity, len(known))
    names = {name: renamed(name, known) for name in rng.sample(known, share)}
    return before + dump_like(_with_names(data, names), body) + after


def _json_body(text: str) -> tuple[str, str, str]:
    fenced = _FENCED.fullmatch(text)
    return (fenced[1], fenced[2], fenced[3]) if fenced else ("", text, "")


def _field_names(data: Any) -> list[str]:
    if isinstance(data, list):
        return list(dict.fromkeys(name for item in data for name in _field_names(item)))
    if not isinstance(data, dict):
        return []
    return list(dict.fromkeys([*data, *(name for part in data.values() for name in _field_names(part))]))


def _with_names(data: Any, names: Mapping[str, str]) -> Any:
    if isinstance(data, list):
        return [_with_names(item, names) for item in data]
    if isinstance(data, dict):
        return {names.get(key, key): _with_names(part, names) for key, part in data.items()}
    return data


def change_format(text: str, severity: str) -> str:
    """JSON becomes fenced, fenced with a remark, or prose; prose becomes fenced, JSON, or fenced JSON with a remark."""
    if not text.strip():
        return text
    _, body, _ = _json_body(text)
    data = parse(body)
    if data is not None:
        return _json_otherwise(data, body.strip(), severity)
    answer = dump({"answer": text})
    return {
        "subtle": f"```\n{text}\n```",
        "moderate": answer,
    }.get(severity, f"Here is the answer as JSON:\n\n```json\n{answer}\n```")


def _json_otherwise(data: Any, body: str, severity: str) -> str:
    fenced = f"```json\n{body}\n```"
    return {
        "subtle": fenced,
        "moderate": f"Here is the JSON you asked for:\n\n{fenced}\n\nLet me know if you need anything else.",
    }.get(severity, _prose(data))


def _prose(data: Any) -> str:
    """The content in sentences."""
    if isinstance(data, list):
        return " ".join(_prose(item) for item in data) or "There is nothing to list."
    if isinstance(data, dict):
        return " ".join(f"The {key.replace('_', ' ')} is {_phrase(part)}." for key, part in data.items()) or "Nothing."
    return f"{_phrase(data)}."


def _phrase(part: Any) -> str:
    if isinstance(part, dict):
        return ", ".join(f"{key} {_phrase(inner)}" for key, inner in part.items()) or "empty"
    if isinstance(part, list):
        return " and ".join(_phrase(item) for item in part) or "empty"
    return part if isinstance(part, str) else dump(part)
