"""What kind of reason a reason is: what is left of it without what differs from trial to trial."""

from __future__ import annotations

import re
from functools import lru_cache

LONGEST = 2_000
"""Characters of a reason that are read: those of our checks have a few hundred."""

# Patterns are texts here: few commands need them, and re keeps what it has compiled.
_AFTER = (
    # Behind our own words: what a model said of its rating, where two answers differ, which calls there were.
    (r"(\bscored [\d.]+, [^:]*?(?:below|at least) [\d.]+): .*", r"\1"),
    (r"(\blike [^()]{1,60} \(\w+, needs [\d.]+\)[^:]*): .*", r"\1"),
    (r"; called: .*", ""),
    (r"; (?:tools called|MCP tools called|models asked|requests seen): [^;]*", ""),
    (r"; the calls had .*", ""),
    (
        r"(?<!status )(?<!code )\bis .{1,200}?(, (?:not|none of|without|which does not match|which is no number)\b)",
        r"is …\1",
    ),
)
# A mail too many and a mail too few are two causes.
_COUNTED = r"(?<!status )(\b(?:is|was called)) (-?\d+(?:\.\d+)?)(?: times?)?, not (-?\d+(?:\.\d+)?)\b"
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
# A filter of a mock's requests tells which assertion it is. An apostrophe inside a word quotes nothing.
_QUOTED = r"request_count of \{[^}]{0,200}\}?|(?<!\w)(['\"`])(.{0,400}?)\1(?!\w)|[“«](.{0,400}?)[”»]"
_NAMES_BEFORE = (
    r"(?:\b(?:field|key|property|column|table|relation|constraint|attribute|argument|parameter|header|tool|file|pattern"
    r"|module|name|named|assertion|called|option|rule)|KeyError:|directory:)\s*$"
)
_NAMES_AFTER = (
    r"\s*(?:is a required property|does not appear|does not exist|is not defined|is missing|is required"
    r"|object (?:has|is)|(?:was|were) not found|not found|(?:was|were) unexpected)"
)
_ID = (
    r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b0x[0-9a-f]+\b"
    r"|\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,64}\b"
    r"|\b(?:call|toolu|req|msg|run|resp|chatcmpl|trial|evt)[_-](?=\w*\d)\w{4,64}\b"
)
_PATH = r"(?<![\w/.])/(?:tmp|var|private|home|Users|root|run|dev/shm)((?:/[^\s/'\"`:,;()]+)+)"
# The number after such a word is the kind itself: a status, an exit code, a known port. So is an address, and which
# request of a mock is meant.
_ADDRESS = r"(?<![\w.])((?:\d{1,3}\.){3}\d{1,3})(?![\w.])"
_NUMBER = (
    rf"{_ADDRESS}|"
    r"(\brequests\[|\b(?:status|code|errno|signal|error|sqlstate|http(?:/[\d.]+)?|exited with|refused with|exit"
    r"|exit code)(?: is)?[ :=]{1,3}-?|\bport[ :=]{1,3}(?=\d{1,4}\b)"
    r"|\b\w*(?:error|exception): (?=[45]\d\d\b))?(?<!\w)\d(?:[\d.,:]*\d)?"
)
_REST = (
    (r"\b([a-z_]{2,})\d{3,}\b", r"\1#"),  # order8812
    (r"# (\w{3,}?)s\b", r"# \1"),  # 1 call, 2 calls
    (r"(?<!\S)\S{0,3}…'?", "…"),  # personal data, of which two characters are shown
    (r"(\b\w+ …)(?:, \1)+", r"\1"),
    (r",? \(?and # more\)?", ""),
    (r"\s+", " "),
)


@lru_cache(4_096)
def kind(reason: str) -> str:
    """Equal for reasons that differ only in what they quote, in numbers, ids, times and temporary places.

    What tells one cause from another stays: words, names of fields, patterns, types of exceptions, endings, statuses,
    exit codes. A quoted name stays where the words around it say that it is one.
    """
    text = re.sub(_COUNTED, _compared, reason[:LONGEST])
    for pattern, instead in _AFTER:
        text = re.sub(pattern, instead, text, flags=re.DOTALL)
    text = re.sub(_TIME, "#", text)
    text = re.sub(_QUOTED, _unquoted, text, flags=re.DOTALL)
    text = re.sub(_ID, "#", text)
    text = re.sub(_PATH, _place, text)
    text = re.sub(_NUMBER, lambda found: found[0] if found[1] or found[2] else "#", text, flags=re.IGNORECASE)
    for pattern, instead in _REST:
        text = re.sub(pattern, instead, text)
    return text.strip()


def _unquoted(found: re.Match[str]) -> str:
    """What is quoted goes, unless it names a part of what is judged."""
    if found[1] is None and found[3] is None:
        return found[0]
    quoted = found[2] if found[3] is None else found[3]
    named = len(quoted) <= 60 and not any(map(str.isspace, quoted))
    if named and (
        re.search(_NAMES_BEFORE, found.string[max(0, found.start() - 24) : found.start()], re.IGNORECASE)
        or re.match(_NAMES_AFTER, found.string[found.end() : found.end() + 40])
    ):
        return found[0]
    return "'…'"


def _compared(found: re.Match[str]) -> str:
    """Of two numbers, which is the larger."""
    return f"{found[1]}-{'above' if float(found[2]) > float(found[3]) else 'below'} #"


def _place(found: re.Match[str]) -> str:
    """Of a path below a temporary place, or below somebody's home: the file's name."""
    *folders, last = found[1][1:].split("/")
    return f"…/{last}" if folders else "…"
