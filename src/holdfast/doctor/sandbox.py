"""The doctor's sandbox: opened as a world's would be, and this Python started in it."""

from __future__ import annotations

import sys

from holdfast.doctor.probe_site import LIMIT_S, ProbeSite, Unmet
from holdfast.errors import HarnessError, UserError
from holdfast.execute.options import USUAL
from holdfast.execute.sandbox_backend import interpreter, kept_here, open_backend, usual_environ
from holdfast.processes import scratch
from holdfast.protocols import Ran, SandboxBackend, SandboxSpec

_IMPORT = "import holdfast.agents.sandbox_host"
"""What a Python agent's program in a sandbox begins with."""
_FIX = (
    "install Holdfast in an environment of its own, in a folder that others may read: python3 -m venv; "
    "or --backend process (no isolation)"
)


async def try_sandbox(probe_site: ProbeSite) -> str:
    """Shows it all that every world shows: a folder that cannot be seen is found here, not in a run."""
    with scratch.folder("doctor-sandbox") as folder:
        try:
            backend = await open_backend(USUAL.backend, folder, None)
            try:
                ran = await _python_in(backend)
            finally:
                await backend.close()
        except UserError as refused:
            raise Unmet(str(refused), refused.hint or _FIX) from refused
        except (HarnessError, OSError) as broken:
            raise Unmet(str(broken), _FIX) from broken
    if ran.timed_out or ran.exit_code != 0:
        said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        why = "no end" if ran.timed_out else said[-1] if said else f"exit code {ran.exit_code}"
        raise Unmet(f"{sys.executable} does not run Holdfast in a sandbox: {why}", _FIX)
    return f"this Python and Holdfast start in it; {kept_here(backend)}"


async def _python_in(backend: SandboxBackend) -> Ran:
    sandbox = await backend.open(SandboxSpec("doctor", visible=interpreter()))
    try:
        return await sandbox.run([sys.executable, "-P", "-c", _IMPORT], usual_environ(), timeout_s=LIMIT_S / 2)
    finally:
        await sandbox.close()
