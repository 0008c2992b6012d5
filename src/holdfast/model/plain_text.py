"""Text as a person reads it: the readings that checks, attacks and canaries share."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from holdfast.model.codec import make_encodable

_ENTITY = re.compile(r"&(?:#[0-9]{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)")
_CODE_SPAN = r"(?<!`)(?P<code>`+)(?!`)(?:[^`]|(?!(?P=code)(?!`))`+)*(?P=code)(?!`)"
_CODE_OR_ENTITY = re.compile(
    r"^[ >]{0,8}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^[ >]{0,8}(?P=fence)|\Z)" + rf"|{_CODE_SPAN}|{_ENTITY.pattern}",
    re.MULTILINE | re.DOTALL,
)
"""Fenced code, a code span or an entity, whichever begins first: inside code an entity is literal."""
# Unicode's default ignorable characters: renderers draw nothing for them.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_COLOUR = re.compile(r"(?:\x1b\[|\x9b)[0-9;:]*m")
"""Terminal codes for colours and bold type. Other codes stay legible: a browser shows them, a link's address too."""
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
"""Control characters other than white space: nobody sees them."""
_SPACES = (0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)
_TYPED = {
    **dict.fromkeys(_SPACES, " "),
    **dict.fromkeys((0x85, 0x2028, 0x2029), "\n"),
    **dict.fromkeys(map(ord, "‘’‚‛ʼ＇"), "'"),
    **dict.fromkeys(map(ord, "“”„‟＂"), '"'),
    **dict.fromkeys((0x2010, 0x2011), "-"),  # models write the second one, which does not break, in ids and prices
}


def to_canonical_text(text: str) -> str:
    """Return the text as `to_typed_text` does, with entities resolved outside of code, and nothing invisible."""
    if "&" in text and _ENTITY.search(text):
        from html import unescape

        # One entity at a time: `unescape` on the whole text also resolves `&copy` in `?a=1&copy=2`.
        text = _CODE_OR_ENTITY.sub(lambda match: unescape(match[0]) if match[0][0] == "&" else match[0], text)
    if "\x1b" in text or "\x9b" in text:
        text = _COLOUR.sub("", text)
    text = _CONTROL.sub("", text)
    return text if text.isascii() else to_typed_text(_INVISIBLE.sub("", text))


def to_typed_text(text: str) -> str:
    """Return the text in NFC with plain spaces and hyphens and straight quotes, as a keyboard writes it."""
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(_TYPED))


_ZEROS = (0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50, 0xFF10)
"""The zeros of other scripts; their other nine digits follow."""
_NUMERIC = {
    **{zero + n: str(n) for zero in _ZEROS for n in range(10)},
    **dict.fromkeys((*_SPACES, *range(0x200B, 0x200E), 0x2060, 0xFEFF), " "),
    **dict.fromkeys((0xAD, *range(0x2010, 0x2016), 0x2212, 0xFE63, 0xFF0D), "-"),
    **{ord(wide): narrow for wide, narrow in zip("＠．＋（）：／", "@.+():/", strict=True)},
}
_EMPHASIS = str.maketrans("*_~", "   ")


def to_plain_numbers(text: str) -> str:
    """Return the text with ASCII digits, plain spaces and hyphens, at its original length."""
    return text if text.isascii() else text.translate(_NUMERIC)


def blank_emphasis(text: str) -> str:
    """Return the text with spaces instead of emphasis marks, at its original length."""
    return text.translate(_EMPHASIS)


_VISIBLE = re.compile(rf"(?!{_INVISIBLE.pattern})\S")


def is_blank(text: str) -> bool:
    """Return whether a person would see nothing."""
    if "(" <= text[:1] <= "~":  # nearly every answer
        return False
    first = _VISIBLE.search(text)
    return not first or (first[0] == "&" and not to_canonical_text(text).strip())


_FENCE = re.compile(r"\s{0,3}(`{3,}(?=[^`]*$)|~{3,})")
_QUOTE_MARKS = re.compile(r"\s{0,3}(?:>[ \t]?)+")
_HEADING = re.compile(r"\s{0,3}#{1,6}[ \t]+")
_NEW_BLOCK = re.compile(r"\s*(?:[-*+•]\s|[0-9]{1,3}[.)]\s|\||$)")
_ONE_NUMBER = re.compile(r"\s*\S*[0-9]\S*\s*")
_MARKED = re.compile(r"[\\*_~`#><\[\n\t\v\f]|  ")
_BLANKS = re.compile(r"[ \t]{2,}|\t")


def strip_marks(text: str) -> str:
    """Return the canonical text without Markdown marks and simple tags, with line wraps joined and single blanks; code
    blocks stay.
    """
    return _strip_marks(to_canonical_text(text))


def _strip_marks(text: str, *, by_line: bool = False) -> str:
    if not _MARKED.search(text):
        return text
    blocks = _iter_blocks(text, by_line=by_line)
    return "\n".join(
        block if is_code else _BLANKS.sub(" ", _strip_block_marks(block)) for block, is_code in blocks if block
    )


def _iter_blocks(text: str, *, by_line: bool) -> Iterator[tuple[str, bool]]:
    """Yield each paragraph, heading and list item on one line, unless `by_line`, and each line of code as it is."""
    # Renderers join the lines of a paragraph, so a phrase that is split over two lines is one phrase for a reader. Code
    # is different: its lines stay, and marks in it are literal.
    fence, wrapped = "", list[str]()
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and mark[1].startswith(fence):
            yield _join_lines(wrapped), False
            fence, wrapped = "" if fence else mark[1], []
        elif fence:
            yield line, True
        else:
            quoted = _QUOTE_MARKS.match(line)
            line = line[quoted.end() :] if quoted else line
            heading = _HEADING.match(line)
            if heading or by_line or not wrapped or not _is_continuation(wrapped[-1], line):
                yield _join_lines(wrapped), False
                wrapped = []
            if heading:
                yield line[heading.end() :], False
            else:
                wrapped.append(line)
    yield _join_lines(wrapped), False


def _is_continuation(line: str, following: str) -> bool:
    """Return whether the next line belongs to the same sentence; a column of numbers is not a sentence."""
    column = _ONE_NUMBER.fullmatch(line) and _ONE_NUMBER.fullmatch(following)
    return bool(line.strip()) and not column and not _NEW_BLOCK.match(following)


# A string, which `re` compiles once at its first use: ranges this large take 3 ms, and few answers need it.
_UNSPACED = "[\u3040-\u30ff\u3400-\u9fff\uff00-\uffef]"


def _join_lines(lines: list[str]) -> str:
    """Join wrapped lines; after a hyphen at the end, and in Chinese and Japanese, without a space."""
    joined = lines[:1]
    for line in (line.lstrip() for line in lines[1:]):
        before = joined[-1] = joined[-1].rstrip(" \t\\")
        hyphen = before.endswith("-") and before[-2:-1].isalnum()
        unspaced = re.match(_UNSPACED, before[-1:]) and re.match(_UNSPACED, line)
        joined.append(line if hyphen or unspaced else f" {line}")
    return "".join(joined)


_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"]*\")?\)|\[[^\[\]]*\])")
_AUTOLINK = re.compile(r"<((?:[a-z][a-z0-9+.-]*:|[\w.+-]+@)[^\s<>]+)>", re.IGNORECASE)
_TAG = re.compile(
    r"<!--(?:(?!<!--).)*?-->|</?(?:a|abbr|b|big|br|code|del|div|em|font|i|ins|kbd|li|mark|p|q|s|samp|small|span|strike|strong|sub|sup"
    r"|td|tt|u|var|wbr)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_BREAKING_TAG = re.compile(r"</?(?:br|div|li|p|td)\b", re.IGNORECASE)
_SIGN = re.compile(rf"\\[!-/:-@\[-`{{-~]|{_CODE_SPAN}|`+|\*+|_+|~~+")
"""An escaped mark, a code span, or a run of marks. Marks inside a code span are literal."""


def _strip_block_marks(block: str) -> str:
    if not _MARKED.search(block):
        return block
    block = _TAG.sub(lambda tag: " " if _BREAKING_TAG.match(tag[0]) else "", block)
    block = _AUTOLINK.sub(r"\1", _LINK.sub(r"\1", block))
    # Marks of emphasis come in pairs, as in CommonMark: `**a*` drops one of its first two stars and keeps the other,
    # and a star without a partner is a star. `waiting` holds the positions of marks that may still find a partner;
    # `dropped` gets the positions of both. Positions refer to `block`, so nothing is cut before all of them are known.
    dropped = set[int]()
    waiting: dict[str, list[int]] = {"*": [], "_": [], "~": []}
    for run in _SIGN.finditer(block):
        sign = run[0][0]
        if sign == "\\":
            dropped.add(run.start())
            continue
        if sign == "`":
            ticks = len(run["code"] or run[0])
            dropped.update((*range(run.start(), run.start() + ticks), *range(run.end() - ticks, run.end())))
            continue
        opens, closes = _classify_marks(sign, block[run.start() - 1 : run.start()], block[run.end() : run.end() + 1])
        # A run closes what earlier runs opened; its remaining marks may open something themselves.
        paired = min(len(waiting[sign]), run.end() - run.start()) if closes else 0
        for place in range(run.start(), run.start() + paired):
            dropped.update((place, waiting[sign].pop()))
        if opens:
            waiting[sign] += range(run.start() + paired, run.end())
    ends = [-1, *sorted(dropped), len(block)]
    return "".join(block[before + 1 : after] for before, after in pairwise(ends))


def _classify_marks(sign: str, before: str, after: str) -> tuple[bool, bool]:
    """Return whether a run of marks can open emphasis and whether it can close it; `_` inside a word is part of the
    word.

    As in CommonMark, a run between a word and a punctuation mark faces the word only: `j***@x.org` is masked, not bold.
    """
    gap_before, gap_after = not before or before.isspace(), not after or after.isspace()
    word_before, word_after = before.isalnum(), after.isalnum()
    opens = not gap_after and (word_after or not word_before)
    closes = not gap_before and (word_before or not word_after)
    if sign == "_":
        return opens and not word_before, closes and not word_after
    return opens, closes


_JSON = re.compile(r"\s*(?:`{3,}(?:json)?\s*)?[\[{\"]", re.IGNORECASE)
_JSON_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\"\\/bfnrt]))")
_PERCENT_ESCAPE = "%[0-9A-Fa-f]{2}"
_CONTROLS = dict(zip("bfnrt", "\b\f\n\r\t", strict=True))
_NESTED = 3
"""Depth of JSON inside JSON strings that is read."""


def iter_readings(text: str, *, forbids: bool, by_line: bool = False) -> Iterator[str]:
    """Yield the distinct readings of a text, the original first; `forbids` also searches the text without formatting
    marks.

    An answer in JSON is also read with its escapes resolved, and for `forbids` any text with those of URLs. `by_line`:
    lines stay as they are.
    """
    yield text
    readings = [text]
    for written in _iter_unescaped(text, urls=forbids):
        plain = to_canonical_text(written)
        for reading in (plain, _strip_marks(plain, by_line=by_line)) if forbids else (plain,):
            if reading not in readings:
                readings.append(reading)
                yield reading


def _iter_unescaped(text: str, *, urls: bool) -> Iterator[str]:
    """Yield the text, the text of its URLs, and the text of the JSON strings in it."""
    yield text
    if urls and re.search(_PERCENT_ESCAPE, text):
        from urllib.parse import unquote

        yield unquote(text)
    for _ in range(_NESTED):
        if "\\" not in text or not _JSON.match(text) or text.rstrip(" \t\r\n`")[-1:] not in ("}", "]", '"'):
            return
        text = _unescape(text)  # which may be JSON inside a JSON string
        yield text


def _unescape(text: str) -> str:
    # An escape may be half of a character.
    return make_encodable(_JSON_ESCAPE.sub(_unescape_character, text)) if "\\" in text else text


def _unescape_character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _CONTROLS.get(escape[2], escape[2])


_MAPPED = 3
"""Spans that are looked up in the original text: each takes about thirty readings."""
_LONGEST_MAPPED = 20_000
"""Length of the longest text in which spans are looked up."""


def locate_spans(text: str, reading: str, spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Find spans of a reading in the original text; those that cannot be located exactly are left out."""
    if len(text) > _LONGEST_MAPPED:  # marks only show a person the place: no verdict depends on them
        return ()
    read = to_canonical_text if to_canonical_text(text) == reading else strip_marks
    # A reading does not record where its characters came from. But the reading of a prefix of the text is, nearly
    # always, a prefix of the reading, and grows with it. So the start of a span is found by bisection: the longest
    # prefix that reads no further than the span. If opening and closing marks lie on both sides of the cut, the prefix
    # reads differently; the words are then not at its end, and the span is left out.

    def measure_length(end: int) -> int:
        return len(read(text[:end]))

    ends = range(len(text) + 1)
    places = [
        (
            max(bisect_right(ends, start, key=measure_length) - 1, 0),
            bisect_left(ends, end, key=measure_length),
            reading[start:end],
        )
        for start, end in spans[:_MAPPED]
    ]
    return tuple((start, end) for start, end, words in places if words in read(text[start:end]))
