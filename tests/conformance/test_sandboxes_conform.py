"""What every sandbox backend promises, tried on those that we have."""

import pytest

from holdfast.testing.sandboxes import CHECKS
from holdfast.world.sandbox import bubblewrap, process

BACKENDS = {"bubblewrap": bubblewrap.Bubblewrap.open_backend, "process": process.ProcessBackend.open_backend}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", BACKENDS)
async def test_a_backend_keeps_its_promises(name, check, tmp_path):
    backend = await BACKENDS[name](tmp_path)
    try:
        await CHECKS[check](backend, tmp_path)
    finally:
        await backend.close()
