"""Checks that a run's files are unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import UserError
from holdfast.store.lines import NOT_SEALED, NOT_SEALED_YET, Seal, compute_seal
from holdfast.store.run_folders import format_resume, is_written
from holdfast.store.rundir import HUNT, MAP, RunDir, list_record_files


def check(run: RunDir, *, force: bool = False) -> str:
    """Reject a run whose files changed after it was sealed; with `force`, or without a seal, return a note instead."""
    ended = run.read_end()
    # Three states are no forgery: a run that is being written, one that was killed before its end, and one whose disk
    # was full. Only what contradicts an existing seal is.
    if is_written(run.path) and (ended is None or not ended.sealed):
        return NOT_SEALED_YET
    if ended is None:
        # Only a run that has ended has a score, and whoever resumes it keeps `ended.json`.
        missing, changed = ["ended.json"] if (run.path / "score.json").exists() else [], list[str]()
    elif ended.seal != ended.compute_seal() or (ended.complete and not ended.sealed):
        missing, changed = [], ["ended.json"]
    else:
        missing, changed = _find_differences(run, ended.sealed) if ended.sealed else ([], [])
    if not changed and not missing:
        return "" if ended is not None and ended.sealed else NOT_SEALED
    verb, pronoun = ("is", "it") if len(missing) == 1 else ("are", "them")
    gone = f"{', '.join(missing)} {verb} missing, although the run wrote {pronoun}"
    forged = f"{', '.join(changed)} changed after the run wrote it; the results may have been tampered with"
    problem = f"run {run.id}: " + "; ".join(text for text, names in ((gone, missing), (forged, changed)) if names)
    if force:
        return problem
    again = format_resume(run.path, run.read_manifest().options.part)
    raise UserError(problem, hint=f"run it again, or override: {again} --force", code="run-tampered")


def _find_differences(run: RunDir, sealed: Mapping[str, Seal]) -> tuple[list[str], list[str]]:
    """Return the files that are missing, and those that changed."""
    paths = {path.name: path for path in list_record_files(run)}
    paths |= {name: run.path / name for name in (HUNT, MAP) if name in sealed}  # one that is not is not read either
    names = sorted(paths.keys() | sealed.keys())
    missing = [name for name in names if name not in paths or not paths[name].exists()]
    return missing, [name for name in names if name not in missing and compute_seal(paths[name]) != sealed.get(name)]
