"""What holds for agents of every kind."""

from __future__ import annotations

RESET_S = 10.0
"""How long a reset may take; then the trial is an error."""
GRACE_S = 2.0
"""Between SIGTERM and SIGKILL."""
OUTPUT_LIMIT = 64_000_000
"""Bytes of output that are read; the rest is thrown away."""
OUTPUT_KEPT = 64_000
"""Bytes of output that are kept: its end, where the traceback is."""
CONTENT_KEYS = ("content", "text", "output", "answer", "message")
"""Where the text of an answer is looked for in a dict or object, in this order."""
