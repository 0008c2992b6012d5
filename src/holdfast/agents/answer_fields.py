"""Finds the answer in an agent's output without a `response_path`, by the keys that agents commonly use."""

from __future__ import annotations

import json
from typing import Any, Final

from holdfast.reading.json_values import MISSING

CONTENT_KEYS = ("content", "text", "output", "answer", "message")
"""The keys of a dict or object that may hold the text of an answer, in this order."""


ANSWER_KEYS: Final = (
    "output",
    "response",
    "result",
    "data",
    "content",
    "text",
    "message",
    "answer",
    "reply",
    "queries",
    "query",
    "results",
)


def find_answer(value: Any) -> Any:
    """Return the first common key's value that is not null; a value that is not an object is the answer itself."""
    if not isinstance(value, dict):
        return value
    answer = MISSING
    for key in ANSWER_KEYS:
        if key in value:
            answer = value[key]
            if answer is not None:
                return answer
    return answer


def to_text(value: Any, *, unwrap: bool = True) -> str:
    """Return a value as text: itself, else its JSON; `unwrap` replaces an object by its content.

    A `response_path` selects the answer itself, so nothing is searched inside it.
    """
    if isinstance(value, str):
        return value
    if unwrap and isinstance(value, dict):
        for key in CONTENT_KEYS:
            if value.get(key) is not None:
                return to_text(value[key])
    return json.dumps(value, ensure_ascii=False)
