"""A document for programs on stdout: shared by the commands that take --json."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from holdfast.model.codec import encode
from holdfast.model.format_numbers import JSON


def print_document(document: Mapping[str, Any]) -> None:
    """One line, the number of the format first."""
    sys.stdout.write(encode({"format": JSON, **document}).decode() + "\n")
