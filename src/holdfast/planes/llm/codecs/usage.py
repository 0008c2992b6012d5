"""What a reply says it used, where nothing else of it is read: embeddings, older endpoints."""

from __future__ import annotations

from typing import Any

from holdfast.model.completion import Usage
from holdfast.planes.llm.codecs.loose import obj, parse

_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")


def usage_in(body: bytes) -> Usage | None:
    """The usage that an OpenAI-like, Anthropic or Ollama reply states; None if it states none."""
    reply = obj(parse(body))
    if not reply:
        return None
    told: Any = reply.get("usage")
    if isinstance(told, dict):
        given, made = _first(told, _INPUT), _first(told, _OUTPUT)
    else:
        given, made = _number(reply.get("prompt_eval_count")), _number(reply.get("eval_count"))
    return None if given is None and made is None else Usage(given or 0, made or 0)


def _first(told: dict[str, Any], names: tuple[str, ...]) -> int | None:
    return next((n for name in names if (n := _number(told.get(name))) is not None), None)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
