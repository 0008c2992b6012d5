"""The dice of one mutation: a digest of the seed, the prompt, the type and the number."""

from __future__ import annotations

from hashlib import blake2b
from random import Random


def dice(seed: int, prompt: str, type: str, n: int) -> Random:
    """The same dice for the same mutation, on any machine and in any order."""
    where = "\0".join((str(seed), type, str(n), prompt)).encode("utf-8", "surrogatepass")
    return Random(int.from_bytes(blake2b(where, digest_size=8).digest(), "big"))
