"""Describes values in a few words for the ledger, and compares them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.model.canary import find_echoes
from holdfast.model.codec import digest, encode, encode_canonical, make_encodable
from holdfast.model.completion import Completion
from holdfast.model.shorten import shorten, strip_terminal_codes
from holdfast.model.trace import TEXT_KEPT

TARGET_KEPT = 500
"""Maximum length, in characters, of a tool name, model name or URL."""

_JSON_KINDS = (dict, list, tuple, int, float, bool, type(None), Completion)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def shorten_target(target: str) -> str:
    """Return a target as counters, ledger and trace record it; a long one is shortened to its ends and a digest."""
    if not target.isascii():
        target = make_encodable(target)
    if len(target) <= TARGET_KEPT:
        return target
    return f"{shorten(target, TARGET_KEPT - 20)} #{digest(target.encode())}"


def find_cut_canaries(text: str) -> tuple[str, ...]:
    """Return the canaries in a text that is too long for an event, which keeps only the text's ends."""
    return () if len(text) <= TEXT_KEPT else find_echoes(text)


def describe(value: Any) -> str:
    """Return a short, readable form of a value."""
    if isinstance(value, Completion):
        return make_encodable(shorten(value.display_text or "an empty reply"))
    return make_encodable(shorten(str.__str__(value) if isinstance(value, str) else render_value(value)))


def render_value(value: Any) -> str:
    """Return the value as complete text, without memory addresses."""
    if isinstance(value, _JSON_KINDS):
        try:
            return _remove_addresses(encode_canonical(value).decode())
        except Exception:  # a value inside it cannot be serialised
            return _print_value(value)
    return _print_value(value)


def to_json(value: Any) -> str:
    """Return a tool's value as JSON; if JSON cannot represent it, its printed form."""
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode("utf-8", "replace")
    try:
        return encode(make_encodable(value) if isinstance(value, str) else value).decode()  # keys keep their order
    except Exception:  # a value inside it cannot be serialised
        return encode(make_encodable(render_value(value))).decode()


def is_same_value(one: Any, other: Any) -> bool:
    """Return whether the agent could not distinguish the two values."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    try:
        equal = bool(one == other)
    except Exception:  # arrays and proxies refuse comparison, so their printed form decides
        equal = True
    if equal:  # 1, 1.0 and True are equal but look different
        return _print_value(one) == _print_value(other)
    by_identity: Any = type(one).__eq__
    if by_identity is not object.__eq__ or _print_value(one) != _print_value(other):
        return False
    try:
        return is_same_value(vars(one), vars(other))
    except TypeError:  # no fields to compare
        return True


def digest_arguments(arguments: Mapping[str, Any]) -> str:
    """Return a digest of a call's arguments that does not depend on memory addresses or on order."""
    try:
        return digest(_remove_addresses(encode_canonical(dict(arguments)).decode()).encode())
    except Exception:  # JSON cannot represent these values: use their printed form
        printed = [f"{name}={_print_value(arguments[name])}" for name in sorted(arguments)]
        return digest("\n".join(printed).encode("utf-8", "surrogatepass"))


def format_exception(raised: BaseException) -> str:
    """Return an exception as one line, even if it cannot print itself."""
    try:
        text = strip_terminal_codes(str(raised))
    except Exception:
        text = "(its message cannot be read)"
    return make_encodable(f"{type(raised).__name__}: {text}" if text else type(raised).__name__)


def _print_value(value: Any) -> str:
    try:
        return _remove_addresses(repr(value))
    except Exception:
        return f"a {type(value).__name__}"


def _remove_addresses(text: str) -> str:
    return _ADDRESS.sub("", text) if " at 0x" in text else text
