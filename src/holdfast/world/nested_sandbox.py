"""An agent that makes a sandbox of its own inside ours: whether it was refused, from what it ran and printed. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from holdfast.model.world import AuditEvent

_PROGRAMS = frozenset(("bwrap", "unshare", "firejail", "nsjail"))
_REFUSED = re.compile(
    r"bwrap: (?:Creating new namespace failed|No permissions to creat\w+ (?:a )?new namespace|setting up uid map)"
    r"|unshare(?: failed)?: (?:No space left on device|Operation not permitted)"
)
_NEXT = "agent.nested_sandbox: true lets it, or turn its own sandbox off: ours is around it"


def refused_nesting(events: Iterable[AuditEvent], printed: str) -> str:
    """A note on an agent whose own sandbox failed; empty on any other."""
    for event in events:
        argv = event.details.get("argv") if event.type == "command" else None
        if argv and os.path.basename(argv[0]) in _PROGRAMS and event.details.get("exit_code") not in (0, None):
            code = event.details["exit_code"]
            return f"{os.path.basename(argv[0])} ended with {code}: no sandbox can be made inside this one; {_NEXT}"
    if _REFUSED.search(printed):
        return f"the agent could make no sandbox of its own inside this one; {_NEXT}"
    return ""
