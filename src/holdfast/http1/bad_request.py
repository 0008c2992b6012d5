"""BadRequest: a request that cannot be read."""

from __future__ import annotations


class BadRequest(Exception):
    """A request that cannot be read: the client gets `status`, and the connection ends."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
