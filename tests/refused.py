"""An error of Holdfast's is known by its code: `with refused("sandbox-unavailable"): …`."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.errors import HoldfastError


@contextmanager
def refused(code: str) -> Iterator[pytest.ExceptionInfo[HoldfastError]]:
    """The block raises an error with this code."""
    with pytest.raises(HoldfastError) as raised:
        yield raised
    assert raised.value.code == code
