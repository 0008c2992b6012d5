"""Why a machine does not let us make sandboxes, and the line that puts it right."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import UserError

INSTEAD = "or --backend process (no isolation)"
_SETTINGS = (
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
    ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ("user/max_net_namespaces", "0", "user.max_net_namespaces=15000"),
)
"""Where the kernel says that it forbids user namespaces, the value that does, and the setting that allows them."""


def explained(refusal: str, settings: Path = Path("/proc/sys")) -> UserError:
    """The error for a user whose machine refuses; never a weaker sandbox in silence."""
    for name, forbids, allow in _SETTINGS:
        if _value(settings / name) == forbids:
            hint = f"sudo sysctl -w {allow}, {INSTEAD}"
            return UserError(f"this machine forbids user namespaces, so no sandbox can be made: {refusal}", hint=hint)
    container = "in a container: --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
    return UserError(f"no sandbox can be made on this machine: {refusal}", hint=f"{container}, {INSTEAD}")


def _value(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
