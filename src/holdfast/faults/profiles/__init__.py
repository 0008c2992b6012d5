"""Profiles: named sets of faults that ship as data, in the format of one or several scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from holdfast.errors import UserError

_FOLDER = Path(__file__).parent


def list_profiles() -> list[str]:
    """Return the names of all profiles, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def load_profile(name: str) -> dict[str, Any]:
    """Return a profile as written: `description`, and its lists of faults, or `scenarios` with such lists."""
    if name not in list_profiles():
        raise UserError(
            f"no profile is called {name!r}", code="profile-unknown", hint=f"profiles: {', '.join(list_profiles())}"
        )
    loaded: dict[str, Any] = yaml.safe_load((_FOLDER / f"{name}.yaml").read_text("utf-8"))
    return loaded
