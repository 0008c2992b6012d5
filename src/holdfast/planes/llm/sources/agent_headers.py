"""The headers of an agent's requests: which key they carry, and what of them goes on to a server."""

from __future__ import annotations

from functools import lru_cache

from holdfast.http1.heads import RawFields, end_to_end
from holdfast.planes.llm.sources.provider_hosts import Key

_KEY_HEADERS = frozenset((b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key"))
_OURS_TO_SET = frozenset(
    (b"host", b"content-length", b"transfer-encoding", b"connection", b"accept-encoding", b"expect")
)
_OURS_AND_KEYS = _OURS_TO_SET | _KEY_HEADERS
_LENGTHS = frozenset((b"content-length", b"Content-Length"))
_UNCOMPRESSED = (b"accept-encoding", b"identity")


class AgentHeaders:
    """Headers that came with a request, without those of its connection."""

    __slots__ = ("_fields", "_onward", "key")

    def __init__(self, fields: RawFields) -> None:
        self._fields = end_to_end(fields)
        self.key = _key_in(self._fields)
        """The key in the first header that is for one; None if there is no such header."""
        self._onward: dict[Key | bool, RawFields] = {}

    def get(self, name: bytes) -> str:
        """The value of a header, by its name in small letters; empty if there is none."""
        return next((value.decode("latin-1") for key, value in self._fields if key.lower() == name), "")

    def onward(self, key: Key | None = None, *, strip: bool = False) -> RawFields:
        """The headers to send upstream; with a key of ours, or with none if `strip`, the agent's own is left out.

        The reply is asked for uncompressed, so that what passes can be read.
        """
        how = strip if key is None else key
        found = self._onward.get(how)
        if found is None:
            found = self._onward[how] = self._made(key, _OURS_AND_KEYS if how else _OURS_TO_SET)
        return found

    def _made(self, key: Key | None, drop: frozenset[bytes]) -> RawFields:
        kept = [field for field in self._fields if field[0].lower() not in drop]
        return (*kept, _UNCOMPRESSED, *([] if key is None else [key.field]))


def agent_headers(fields: RawFields) -> AgentHeaders:
    """The headers of a request. A client library sends the same ones with every call but for the length: read once."""
    return _known(tuple([field for field in fields if field[0] not in _LENGTHS]))


_known = lru_cache(64)(AgentHeaders)


def _key_in(fields: RawFields) -> str | None:
    for name, value in fields:
        if name.lower() in _KEY_HEADERS:
            words = value.decode("latin-1").split(None, 1)
            return words[-1].strip() if words and words[0].lower() != "bearer" else "".join(words[1:]).strip()
    return None
