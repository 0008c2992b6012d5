"""Where the answer is in what an agent gave if no `response_path` says so: the keys that agents commonly use."""

from __future__ import annotations

import json
from typing import Any, Final

from holdfast.reading.json_values import MISSING

RESET_S = 10.0
"""How long a reset may take; then the trial is an error."""
CONTENT_KEYS = ("content", "text", "output", "answer", "message")
"""Where the text of an answer is looked for in a dict or object, in this order."""


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
    """What stands under the first of the usual keys that is not null; a reply that is no object is all answer."""
    if not isinstance(value, dict):
        return value
    found = MISSING
    for key in ANSWER_KEYS:
        if key in value:
            found = value[key]
            if found is not None:
                return found
    return found


def text_of(value: Any, *, unwrap: bool = True) -> str:
    """A found value as text: itself, else its JSON; `unwrap`: an object's content in its place.

    A `response_path` says which value is the answer, and nothing is looked for inside it.
    """
    if isinstance(value, str):
        return value
    if unwrap and isinstance(value, dict):
        for key in CONTENT_KEYS:
            if value.get(key) is not None:
                return text_of(value[key])
    return json.dumps(value, ensure_ascii=False)
