"""Canaries: words that no agent says unless an attack made it, and the one reader that finds them.

What a person would see as the word is the word, however it is written, and so is one that is hidden in a tag or a link.
The reader undoes escapes and encodings step by step and looks, after each step, at the text without spaces, line breaks
and marks of formatting.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
import zlib
from collections.abc import Iterator
from random import Random

from holdfast.model.codec import encodable
from holdfast.model.plain_text import canonical

MARK = "HOLDFAST-CANARY-"

_CANARY = re.compile(MARK + "[0-9a-f]{8}")
_ECHO = re.compile(MARK.lower() + "[0-9a-f]{8}")

ECHOES_KEPT = 100
"""Canaries that are looked for in what an agent sends: more than any attack plants."""
_STEPS = 4
"""Encodings inside each other that are undone: JSON in JSON in a URL, say."""

_ESCAPE = re.compile(
    r"\\+(?:u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|0?(?P<octal>[0-3][0-7]{2})|[nrt])"
    r"|=([0-9A-F]{2})|=\r?\n"
)
"""Escapes of JSON, JavaScript, Python and shells, and those of quoted-printable mail."""
_CSS_ESCAPE = re.compile(r"\\([0-9a-fA-F]{1,6})\s?")
"""Of style sheets. `\\110` is one in octal, too, so a text is read both ways."""
_FORMATTING = (
    r"\s+(?:>[ \t]*)*"  # blanks, line breaks, and the marks of a quotation after them
    r"|[\\*_`~\[\]\x00]"
)
_SPACING = re.compile(_FORMATTING)
_NOISE = re.compile(
    r"\]\[[^\[\]]{0,200}\]|"  # the name of a link's target
    + _FORMATTING
    + r"|\((?:[A-Za-z][A-Za-z0-9+.-]*:|[/#])[^()\s]{0,200}\)"  # where a link leads to
    r"|</?[A-Za-z][^<>]{0,200}>|<!--[^<>]{0,200}-->"
)
_LOOKALIKES = str.maketrans(
    "‐‑‒–—―−﹘﹣－АВСЕНОЅТУаеосуһԁѕΑΒΕΗΝΟΤΥοᴀʙᴄᴅᴇꜰғʜʟɴᴏʀꜱᴛʏ",
    "----------ABCEHOSTYaeocyhdsABEHNOTYoABCDEFFHLNORSTY",
) | {first + n: chr(ord("A") + n) for first in (0x1F150, 0x1F170, 0x1F1E6) for n in range(26)}
"""Letters of other alphabets that look like those of a canary, small capitals, white letters in black circles and
squares, letters of flags, and hyphens that look like its hyphen."""


def new_canary(rng: Random) -> str:
    """A word that no agent says unless an attack made it."""
    return f"{MARK}{rng.getrandbits(32):08x}"


def canaries(text: str) -> list[str]:
    """Every canary in a text as it was planted, in order, each once."""
    return list(dict.fromkeys(_CANARY.findall(text)))


def echoes(text: str) -> tuple[str, ...]:
    """Every canary in a text, in small letters; a few at the most.

    It may be seen, or hidden in a tag, a comment or the target of a link: there it reaches whoever gets the link.
    """
    words = (word for reading in _readings(text) for bare in _bare(reading) for word in _ECHO.findall(bare))
    return tuple(dict.fromkeys(words))[:ECHOES_KEPT]


def _readings(text: str) -> Iterator[str]:
    """The text as it is, and after each encoding that can be undone."""
    for _ in range(_STEPS):
        yield text
        if "\\" in text and (styled := _CSS_ESCAPE.sub(_sign, text)) != text:
            yield encodable(styled)
        plain = _decoded(text)
        if plain == text:
            return
        text = plain
    yield text


def _decoded(text: str) -> str:
    text = canonical(text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_LOOKALIKES)
    if "\\" in text or "=" in text:
        text = encodable(_ESCAPE.sub(_sign, text))  # an escape may be half of a character
    if "+" in text and not any(map(str.isspace, text)):
        text = text.replace("+", " ")  # a form, in which a plus is a space
    if "%" in text:
        from urllib.parse import unquote

        text = unquote(text, errors="replace")
    return text


def _sign(escape: re.Match[str]) -> str:
    digits = next(filter(None, escape.groups()), "")
    number = int(digits, 8 if escape.lastgroup == "octal" else 16) if digits else ord("\n")
    return chr(number) if number < 0x110000 else ""


def _bare(text: str) -> Iterator[str]:
    """The text without marks of formatting: as it is shown, and with the tags and targets of links that are not."""
    yield _NOISE.sub("", text).lower()
    if "<" in text or "(" in text or "][" in text:
        yield _SPACING.sub("", text).lower()


class Lookout:
    """Finds canaries in bytes as they pass, however they are cut. `legible`: all of it could be read as text."""

    def __init__(self, *, packed: bool = False) -> None:
        """`packed`: the bytes are in gzip or zlib."""
        self._unpacker = zlib.decompressobj(47) if packed else None
        self._decoder: codecs.IncrementalDecoder | None = None
        self._head = b""
        self._tail = ""
        self._found: dict[str, None] = {}
        self._size = self._odd = 0
        self._broken = False

    @property
    def found(self) -> tuple[str, ...]:
        """In small letters, in order, each once."""
        return tuple(self._found)

    @property
    def legible(self) -> bool:
        """A few odd bytes, as in text of an old encoding, hide no word."""
        return not self._broken and self._odd * 8 <= self._size

    def feed(self, data: bytes) -> None:
        """The next bytes."""
        if self._unpacker is not None:
            try:
                data = self._unpacker.decompress(data, _UNPACKED)  # of a header alone: nothing
            except zlib.error:
                data, self._broken = b"", True
            # What is too much, or comes after the end, was not read.
            self._broken |= bool(self._unpacker.unconsumed_tail or self._unpacker.unused_data)
        text = self._text(data)
        self._size += len(text)
        self._odd += text.count("\ufffd") + sum(map(text.count, _CONTROLS))
        self._tail += text
        if len(self._found) < ECHOES_KEPT:
            self._found.update(dict.fromkeys(echoes(self._tail)))
        self._tail = self._tail[-_OVERLAP:]

    def _text(self, data: bytes) -> str:
        """The bytes as text: of UTF-16 and UTF-32 if they begin so, else of UTF-8."""
        if self._decoder is None:
            self._head, data = b"", self._head + data
            name = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
            if len(data) < _MARK_SIZE and any(mark.startswith(data) for mark, _ in _MARKS):
                self._head = data
                return ""
            self._decoder = codecs.getincrementaldecoder(name)("replace")
        # Without a mark, the letters of a canary in UTF-16 or UTF-32 are those of UTF-8 with zeros between them.
        return self._decoder.decode(data).replace("\0", "")


_UNPACKED = 10_000_000
"""Bytes that one piece of packed data may come to."""
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MARK_SIZE = 4
_OVERLAP = 1_000
"""Characters of the piece before that are read again: a canary with each letter escaped is shorter."""
_CONTROLS = tuple(map(chr, (*range(1, 9), *range(14, 32))))
"""Signs that stand in no text."""
