"""For `pytest.raises(…, check=has_code("…"))`: errors are recognised by their code, not by their words."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.errors import HoldfastError


def has_code(code: str) -> Callable[[HoldfastError], bool]:
    return lambda error: error.code == code
