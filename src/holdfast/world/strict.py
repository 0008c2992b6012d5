"""What a spec asks for and this machine does not keep: refused where the user is strict about it."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.errors import UserError
from holdfast.model.world import Isolation, WorldSpec


def lacking(spec: WorldSpec, isolation: Iterable[Isolation]) -> list[Isolation]:
    """The promises that are not kept, without limits and logs that nobody asked for."""
    unasked = {
        "memory limit": spec.resources.memory is None,
        "cpu limit": spec.resources.cpu is None,
        "disk limit": spec.resources.disk is None,
        "pids limit": spec.resources.pids is None,
        "command audit": not spec.audit.commands,
        "file audit": not spec.audit.file_writes,
    }
    return [one for one in isolation if not one.enforced and not unasked.get(one.feature, False)]


def refuse_lacking(spec: WorldSpec, isolation: Iterable[Isolation], backend: str) -> None:
    """Raises UserError that names every promise which cannot be kept."""
    missing = lacking(spec, isolation)
    if missing:
        named = "; ".join(f"{one.feature} ({one.why})" if one.why else one.feature for one in missing)
        hint = "leave --strict-world out, use another --backend, or do not ask for it"
        raise UserError(f"the {backend} backend cannot enforce here: {named}", hint=hint)
