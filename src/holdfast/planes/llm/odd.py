"""The same stream in odd pieces: what a client meets behind proxies that buffer and split as they like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from random import Random

from holdfast.planes.llm.codec import Frame

_COMMENT = b": keep-alive\n\n"
_PING = b"event: ping"
_CONTINUED = re.compile(rb"[\x80-\xbf]")
"""A byte inside a character."""


def odd_frames(frames: Iterable[Frame], rng: Random) -> Iterator[Frame]:
    """Cuts frames inside characters and fields, joins some to the next, and puts comments between events.

    Nothing is said twice but a comment or a ping. Comments only go where the format has them: between events that
    end with an empty line of LF (Google's end with CRLF, and its library takes a comment for data).
    """
    held = b""
    for frame in frames:
        if not isinstance(frame, bytes):
            yield from _cut(held, rng)
            held = b""
            yield frame
            continue
        held += frame
        if frame.endswith(b"}\n\n"):
            held += _between(frame, rng)
        if rng.random() < 0.3:  # two frames in one packet, cut elsewhere
            continue
        pieces = list(_cut(held, rng))
        held = pieces.pop() if rng.random() < 0.5 else b""
        yield from pieces
    yield from _cut(held, rng)


def _between(frame: bytes, rng: Random) -> bytes:
    """What may stand after an event without changing what is said."""
    if frame.startswith(_PING):
        return frame
    return _COMMENT * rng.choice((0, 1, 1, 2))


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
