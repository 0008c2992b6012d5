"""Shortens and cuts texts, by characters or by tokens, and removes terminal codes."""

from __future__ import annotations

import re
from itertools import islice

LIMIT = 200
"""Characters of a value in the ledger: enough to recognise it, small next to an answer."""


_TERMINAL_CODE = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\)"
"""Matches a complete escape sequence of a terminal: colours, the cursor, or either end of a link."""


def strip_terminal_codes(text: str) -> str:
    """Return the text of a program as a terminal shows it, without colours, cursor movements and link addresses."""
    return re.sub(_TERMINAL_CODE, "", text) if "\x1b" in text or "\x9b" in text else text


def shorten(text: str, limit: int = LIMIT) -> str:
    """Return the text, without its middle if it is too long."""
    if len(text) <= limit:
        return text
    # The middle is left out, because both ends are informative: messages begin with their kind and end with their
    # cause.
    half = (limit - 3) // 2
    return f"{text[:half]} … {text[-half:]}"


def join_lines(text: str) -> str:
    """Return the text on one line, with single spaces."""
    return " ".join(text.split())


def get_beginning(text: str, limit: int = LIMIT) -> str:
    """Return the beginning of the text, on one line."""
    line = join_lines(text[: limit * 4])
    return line if len(line) <= limit else line[: limit - 1] + "…"


# A token is a word, a Chinese, Japanese or Korean character, or a punctuation mark. Models count with their own tables;
# this count needs none and is close enough to decide where to cut.
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
# It is a string, which `re` compiles once at its first use: ranges this large take 3 ms, and most runs count no tokens.
_TOKEN = rf"[{_CJK}]|(?:(?![{_CJK}])\w)+|[^\w\s]"


def count_tokens(text: str) -> int:
    """Return the number of tokens in the text."""
    return sum(1 for _ in re.finditer(_TOKEN, text))


def take_tokens(text: str, limit: int) -> str:
    """Return the text up to the end of token number `limit`, or the whole text if it is shorter."""
    if limit < 1:
        return "" if re.search(_TOKEN, text) else text
    ends = [match.end() for match in islice(re.finditer(_TOKEN, text), limit + 1)]
    return text if len(ends) <= limit else text[: ends[limit - 1]]


def split_tokens(text: str) -> list[str]:
    """Split the text into tokens, each with the space before it; joined, they give the text again."""
    ends = [match.end() for match in re.finditer(_TOKEN, text)]
    if not ends:
        return [text] if text else []
    ends[-1] = len(text)
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
