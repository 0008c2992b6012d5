"""The codes of errors: what scripts and tests rely on where messages are for people."""

from __future__ import annotations

ERROR_CODES = {
    "bug": "Holdfast failed in a way it does not expect. `HOLDFAST_DEBUG=1` shows the traceback.",
    "file-unusable": "The operating system refused access to a file or a stream.",
    "spec-invalid": "The spec file has errors; each has its own code.",
    "usage": "The command line has an unknown command, option or argument.",
}
"""Each code that an error can carry, and what it means. `docs/codes.md` is generated from it."""
