"""Functions passed as objects, which no other process could import: attributes of this module during one run.

`holdfast.api.inline_callables:answer` names one. An inline agent is called in this process, where the name resolves.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_here = sys.modules[__name__]
_one_run = threading.RLock()
"""Inline agents share the process: two in parallel would get each other's output, folder and functions."""


@contextmanager
def install_functions(functions: Mapping[str, Callable[..., Any]], *, inline: bool) -> Iterator[None]:
    """Make the functions importable from here while the context is open. No other inline agent runs meanwhile."""
    if not inline:
        yield
        return
    with _one_run:
        for name, function in functions.items():
            setattr(_here, name, function)
        try:
            yield
        finally:
            for name in functions:
                delattr(_here, name)
