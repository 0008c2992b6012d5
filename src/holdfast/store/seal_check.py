"""Whether a run's files are still as the run wrote them."""

from __future__ import annotations

from shlex import quote

from holdfast.errors import UserError
from holdfast.model.spec import run_command
from holdfast.store.run_locks import is_written
from holdfast.store.run_names import name_here
from holdfast.store.rundir import RunDir
from holdfast.store.seals import NOT_SEALED, NOT_SEALED_YET, seal_of


def check(run: RunDir, *, force: bool = False) -> str:
    """Refuses a run whose files changed after it was sealed; with `force`, or without a seal, what to say of that."""
    ended = run.ended()
    if ended is None or not ended.sealed:
        return NOT_SEALED_YET if is_written(run.path) else NOT_SEALED
    found = {path.name: path for path in run.record_files()}
    names = sorted(found.keys() | ended.sealed.keys())
    missing = [name for name in names if name not in found or not found[name].exists()]
    changed = [name for name in names if name not in missing and seal_of(found[name]) != ended.sealed.get(name)]
    if not changed and not missing:
        return ""
    gone = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing, although the run wrote it"
    forged = f"{', '.join(changed)} changed after the run wrote it; the results may have been tampered with"
    said = f"run {run.id}: " + "; ".join(text for text, of in ((gone, missing), (forged, changed)) if of)
    if force:
        return said
    again = run_command(run.manifest().options.part)
    raise UserError(
        said,
        hint=f"run it again, or override: {again} --resume {quote(name_here(run.path))} --force",
        code="run-tampered",
    )
