"""The same stream in odd pieces: what a client meets behind proxies that buffer and split as they like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from random import Random

from holdfast.planes.llm.codecs.codec import StreamFrame

_COMMENT = b": keep-alive\n\n"
_PING = b'event: ping\ndata: {"type":"ping"}\n\n'
_QUIET = re.compile(
    rb"event: (ping|response\.in_progress)\n"
    rb'|data: .*"delta":\{"role":"assistant","content":(""|null),"refusal":null\}'
    rb'|data: .*"parts":\[\{"text":""\}\]'
)
"""A frame that says nothing, in the formats of server-sent events."""
_SPOKEN = re.compile(rb'"(content|response)":"(?:[^"\\]|\\.)+"')
"""What a line of Ollama's says."""
_CONTINUED = re.compile(rb"[\x80-\xbf]")
"""A byte inside a character."""


def odd_frames(frames: Iterable[StreamFrame], rng: Random) -> Iterator[StreamFrame]:
    """Cuts frames inside characters and fields, joins some to the next, repeats some, and puts comments between events.

    Nothing that says anything is said twice: repeated are frames that say nothing, as servers send them to keep a
    connection alive. Comments only go where the format has them: between events that end with an empty line of LF
    (Google's end with CRLF, and its library takes a comment for data).
    """
    held = b""
    repeats = _Repeats(rng)
    for frame in frames:
        if not isinstance(frame, bytes):
            yield from _cut(held, rng)
            held = b""
            yield frame
            continue
        held += frame + repeats.after(frame)
        if frame.endswith(b"}\n\n"):
            held += _COMMENT * rng.choice((0, 1, 1, 2))
        if rng.random() < 0.3:  # two frames in one packet, cut elsewhere
            continue
        pieces = list(_cut(held, rng))
        held = pieces.pop() if rng.random() < 0.5 else b""
        yield from pieces
    yield from _cut(held, rng)


class _Repeats:
    """Which frames of one stream come again: the first that says nothing, and others by luck."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._done = False

    def after(self, frame: bytes) -> bytes:
        """What is sent once more after a frame."""
        quiet, again = self._quiet(frame)
        if not quiet or (self._done and self._rng.random() < 0.5):
            return b""
        self._done = True
        return quiet * again

    def _quiet(self, frame: bytes) -> tuple[bytes, int]:
        """A frame that says nothing and may follow this one, and how often, so that it comes twice."""
        if _QUIET.match(frame):
            return frame, 1
        if self._done:
            return b"", 0
        if frame.startswith(b"event: message_start\n"):
            return _PING, 2
        if frame.endswith(b'"done":false}\n') and b'"tool_calls"' not in frame and _SPOKEN.search(frame):
            return _SPOKEN.sub(rb'"\1":""', frame), 2
        return b"", 0


def _cut(data: bytes, rng: Random) -> Iterator[bytes]:
    """The bytes in pieces: always inside a character of several bytes if there is one, else anywhere."""
    if not data:
        return
    inside = [found.start() for found in islice(_CONTINUED.finditer(data, 1), 1_000)]
    places = set(rng.sample(inside, min(2, len(inside))))
    places |= {rng.randrange(1, len(data)) for _ in range(2) if len(data) > 1}
    start = 0
    for place in sorted(places):
        yield data[start:place]
        start = place
    yield data[start:]
