"""PyYAML, without the pattern that only its own scanner asks: compiling that takes longer than reading a spec.

libyaml reads for us. Whoever uses PyYAML's own scanner in this process, such as an inline agent, finds the pattern
compiled when it is first asked.
"""

from __future__ import annotations

import re
import sys
from typing import Any

_WIDE = "\U0010ffff"
"""Ends a range of all characters there are."""
_compile = re.compile


class LatePattern:
    """A pattern that is compiled when it is first used."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        return getattr(_compile(self._text), name)


def _late(pattern: Any, flags: Any = 0) -> Any:
    return LatePattern(pattern) if isinstance(pattern, str) and _WIDE in pattern else _compile(pattern, flags)


if "yaml" in sys.modules:
    import yaml as yaml
else:
    re.compile = _late  # for the time of this import
    try:
        import yaml as yaml
    finally:
        re.compile = _compile
