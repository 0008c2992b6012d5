"""How many examples a property is tried with: a third of them in `make test`, all of them in `make test-long`."""

from __future__ import annotations

import os

ALL = os.environ.get("ALL_EXAMPLES") == "1"
LEAST = 20


def examples(count: int) -> int:
    """Every run draws others, so that many short runs find what a long one does."""
    return count if ALL else max(count // 3, min(count, LEAST))
