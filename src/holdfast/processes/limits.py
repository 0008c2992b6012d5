"""What holds for every program that Holdfast starts."""

from __future__ import annotations

GRACE_S = 2.0
"""Between SIGTERM and SIGKILL."""
OUTPUT_LIMIT = 64_000_000
"""Bytes of output that are read; the rest is thrown away."""
OUTPUT_KEPT = 64_000
"""Bytes of output that are kept: its end, where the traceback is."""
