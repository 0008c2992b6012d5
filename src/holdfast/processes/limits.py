"""What holds for every program that Holdfast starts. Standard library only."""

from __future__ import annotations

GRACE_S = 2.0
"""Between SIGTERM and SIGKILL."""
OUTPUT_LIMIT = 64_000_000
"""Bytes of output that are read; the rest is thrown away."""
OUTPUT_KEPT = 64_000
"""Bytes of output that are kept: its end, where the traceback is."""
OWN_COMMAND = "HOLDFAST_OWN_COMMAND"
"""A variable in the environment of our own commands: what such a command touches, the agent did not touch."""


def output_notes(printed: int) -> tuple[str, ...]:
    """What the reader should know of output of which so many bytes came."""
    if printed > OUTPUT_LIMIT:
        return (f"more than {OUTPUT_LIMIT} bytes were printed; only the first ones were read",)
    if printed > OUTPUT_KEPT:
        return (f"{printed} bytes were printed; the last {OUTPUT_KEPT} are kept",)
    return ()
