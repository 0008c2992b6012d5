"""Limits that apply to every program that Holdfast starts. Standard library only."""

from __future__ import annotations

GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
OUTPUT_LIMIT = 64_000_000
"""Maximum number of bytes of output that are read; the rest is discarded."""
OUTPUT_KEPT = 64_000
"""Maximum number of bytes of output that are stored: its end, where the traceback is."""
OWN_COMMAND = "HOLDFAST_OWN_COMMAND"
"""A variable in the environment of Holdfast's own commands, to distinguish their file accesses from the agent's."""


def make_output_notes(printed: int) -> tuple[str, ...]:
    """Return a note for output of this many bytes, if some of it was discarded."""
    if printed > OUTPUT_LIMIT:
        return (f"more than {OUTPUT_LIMIT} bytes were printed; only the first ones were read",)
    if printed > OUTPUT_KEPT:
        return (f"{printed} bytes were printed; the last {OUTPUT_KEPT} are kept",)
    return ()
