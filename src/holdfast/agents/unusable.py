"""Why an agent cannot be used, in the words of the one who wrote it."""

from __future__ import annotations

import os

from holdfast.agents.host_protocol import Unusable
from holdfast.errors import HoldfastError, UserError
from holdfast.model.codec import carried
from holdfast.planes.describe import said


def unusable(broken: BaseException, root: str) -> Unusable:
    """What stopped the import, with the near miss if a name was mistyped."""
    return carried(_told(broken, root))


def _told(broken: BaseException, root: str) -> Unusable:
    if isinstance(broken, UserError):
        return Unusable(str(broken), broken.hint, key=broken.key)
    if isinstance(broken, HoldfastError):
        return Unusable(str(broken))
    if isinstance(broken, SystemExit):
        return Unusable(f"the agent's module called exit({broken.code}) while it was imported", trace=_trace(broken))
    if isinstance(broken, ModuleNotFoundError):
        message = f"cannot import {broken.name!r}: no such module beside the spec or installed"
        return Unusable(message, _near(broken.name or "", root), _trace(broken))
    return Unusable(f"importing the agent failed: {said(broken)}", trace=_trace(broken))


def _trace(broken: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(broken)[-6:])


def _near(name: str, root: str) -> str:
    from difflib import get_close_matches

    try:
        beside = [entry.removesuffix(".py") for entry in os.listdir(root)]
    except OSError:
        return ""
    near = get_close_matches(name, beside, 1)
    return f"did you mean {near[0]}?" if near else ""
