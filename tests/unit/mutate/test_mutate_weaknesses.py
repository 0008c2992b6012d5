"""An agent with a weakness is found by the type that looks for it; its repaired twin is not blamed."""

from __future__ import annotations

import codecs
import html
import re
from base64 import b64decode
from collections.abc import Callable
from urllib.parse import unquote

import pytest
from mutate_kit import mutated

from holdfast.model.mutation import MutationType

PROMPT = "Where is order A-1234, and when will it arrive?"
SHIPPED = "Order A-1234 was shipped."
LOST = "I do not know what you mean."

Answer = Callable[[str], str]


def by_word(prompt: str) -> str:
    """Looks for words as they are written."""
    return SHIPPED if "order" in prompt and "arrive" in prompt and "when" in prompt else LOST


def by_start(prompt: str) -> str:
    """Looks at how a request begins."""
    return SHIPPED if prompt.startswith("Where is") else LOST


def by_opening(prompt: str) -> str:
    """Reads a few hundred characters."""
    return by_number(prompt[:400])


def by_tokens(prompt: str) -> str:
    """Looks for words between single spaces."""
    return SHIPPED if {"Where", "is", "order"} <= set(prompt.split(" ")) else LOST


def by_number(prompt: str) -> str:
    """Looks for an order's number, whatever stands around it."""
    return SHIPPED if re.search(r"\bA-1234\b", prompt, re.IGNORECASE) else LOST


def by_decoded_number(prompt: str) -> str:
    """Does so in what an encoded request says, too."""
    _, _, encoded = prompt.partition("\n\n")
    return SHIPPED if any(by_number(text) == SHIPPED for text in (prompt, *_decoded(encoded))) else LOST


def _decoded(text: str) -> list[str]:
    found = [codecs.decode(text, "rot13"), unquote(text), html.unescape(text)]
    found.append(re.sub(r"\\u\{([0-9a-f]+)\}", lambda sign: chr(int(sign[1], 16)), text))
    for decode in (b64decode, lambda value: bytes.fromhex(value)):
        try:
            found.append(decode(text).decode())
        except ValueError:
            continue
    return found


@pytest.mark.parametrize(
    ("type", "weak", "twin"),
    [
        ("noise", by_word, by_number),
        ("encoding_attacks", by_number, by_decoded_number),
        ("length_extremes", by_opening, by_number),
        ("language_mixing", by_start, by_number),
        ("token_manipulation", by_tokens, by_number),
        ("custom", by_start, by_number),
    ],
)
def test_the_weak_agent_is_found_and_its_twin_is_not_blamed(type: MutationType, weak: Answer, twin: Answer) -> None:
    made = mutated([type], [PROMPT], count=20, templates={"angry": "I have had enough! {prompt}"}).tasks
    assert weak(PROMPT) == twin(PROMPT) == SHIPPED
    assert LOST in {weak(task.turns[0]) for task in made}
    assert [task.turns for task in made if twin(task.turns[0]) != SHIPPED] == []
