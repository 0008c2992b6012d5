"""A sandbox whose workspace is a folder."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.errors import OutsideError


class Frozen:
    """A workspace that stays as it is."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, path: str) -> Path | None:
        if path.startswith("out"):
            raise OutsideError(f"{path} is outside the workspace")
        return self._root / path if os.path.lexists(self._root / path) else None
