"""What holds for agents of every kind."""

from __future__ import annotations

RESET_S = 10.0
"""How long a reset may take; then the trial is an error."""
CONTENT_KEYS = ("content", "text", "output", "answer", "message")
"""Where the text of an answer is looked for in a dict or object, in this order."""
