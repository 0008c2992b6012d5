"""Another name for a field, as a new version of a service would choose it."""

from __future__ import annotations

import re
from collections.abc import Collection


def rename_field(name: str, taken: Collection[str] = ()) -> str:
    """Turn `total_price` into `totalPrice` and back; a single word gets `_value`. Never returns a name in `taken`."""
    other = _restyle(name)
    while other in taken or other == name:
        other += "_v2"
    return other


def _restyle(name: str) -> str:
    words = name.strip("_").split("_")
    if len(words) > 1:
        return words[0].lower() + "".join(word[:1].upper() + word[1:] for word in words[1:])
    if re.search(r"[a-z0-9][A-Z]", name):
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return f"{name}_value"
