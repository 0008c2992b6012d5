"""A run of several parts: the result of each, and the overall result."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote

from msgspec.structs import replace

from holdfast.errors import UserError
from holdfast.model.codec import create_decoder, digest, encode
from holdfast.model.run import Overall, PartResult
from holdfast.model.score import Score
from holdfast.model.spec import Part, PartWeights, Spec, get_run_command
from holdfast.reading.words import format_plural
from holdfast.runner.hunt_view import list_hunt_reasons, read_hunt
from holdfast.runner.outcome import RunOutcome
from holdfast.score.overall import combine_shard_parts, compute_overall_score, get_part_weight
from holdfast.score.resilience import HELD, Reason
from holdfast.store.run_folders import format_name
from holdfast.store.rundir import RunDir, read_json, write_json

OVERALL = "overall.json"
NOT_DECLARED: dict[Part, str] = {
    "contract": "add contract: with name and invariants, and chaos_matrix: with - name: no-chaos",
    "scenario": "add task: {prompt: …} and a map of invariants",
    "mutation": "add golden_prompts: and a top-level list, invariants: [{type: completes}]",
    "chaos": "add chaos: with tool_faults, llm_faults or context_attacks, to golden_prompts and a list of invariants",
    "replay": "add replays: {sessions: [{file: …}]}; holdfast promote creates one from a failed trial",
}
"""What to add to a file that does not declare a part."""
_RULES = "a top-level list, invariants: [{type: completes}]"


def describe_missing(part: Part, spec: Spec) -> str:
    """Return what to add to this file to declare the part."""
    if not spec.has_golden or part not in ("mutation", "chaos"):
        return NOT_DECLARED[part]
    if part == "mutation":
        return f"golden_prompts have no rules of their own: add {_RULES}"
    faults = "chaos: with tool_faults, llm_faults or context_attacks"
    return f"add {faults}" if "mutation" in spec.declares else f"add {faults}, and {_RULES}"


ORDER: tuple[Part, ...] = ("hunt", "scenario", "contract", "mutation", "chaos", "replay")


def build_part_results(outcome: RunOutcome, whole: RunDir, weights: PartWeights) -> tuple[PartResult, ...]:
    """Return the result of a run of one part; a scenario with a matrix also yields the contract."""
    run, score = outcome.run, outcome.score
    page = os.path.relpath(run.page, whole.path) if run.page else ""
    if run.part == "hunt":
        return (replace(_build_hunt_result(Path(run.path)), run=run.id, page=page),)
    if run.part != "scenario":
        return (replace(_build_result(run.part, score, weights), run=run.id, page=page),)
    passed = sum(row.case.status == "pass" for row in run.cases)
    summary = f"{passed} of {format_plural(len(run.cases), 'case')} passed"
    scenario = replace(_build_verdict("scenario", score, summary), run=run.id, page=page)  # cases alone: no score
    if run.contract is None:
        return (scenario,)
    return scenario, replace(_build_result("contract", run.contract, weights), run=run.id, page=page, trials=0)


def _build_hunt_result(path: Path) -> PartResult:
    """Return the result of a hunt: it has no score, and a cause that fails is a violation. Open points decide
    nothing.
    """
    result = read_hunt(RunDir(path))
    if result is None:
        return PartResult("hunt", skipped="it did not finish")
    reasons = [reason for reason in list_hunt_reasons(result) if reason.code != "hunt-open"]
    exit_code = reasons[0].exit_code if reasons else HELD
    known_count = sum(one.known for one in result.causes)
    counts = (("known cause", known_count), ("new cause", len(result.causes) - known_count))
    failing = [f"{format_plural(n, noun)} {'fails' if n == 1 else 'fail'}" for noun, n in counts if n]
    fixed = [f"{format_plural(len(result.fixed), 'known cause')} fixed"] if result.fixed else []
    return PartResult(
        "hunt",
        passed=exit_code == HELD,
        exit_code=exit_code,
        reasons=tuple(one.text for one in reasons),
        reason_codes=tuple(one.code for one in reasons),
        trials=result.trials,
        said=", ".join([*(failing or ["no cause fails"]), *fixed]),
    )


def _build_verdict(part: Part, score: Score, summary: str) -> PartResult:
    return PartResult(
        part,
        passed=score.exit_code == HELD,
        exit_code=score.exit_code,
        reasons=score.reasons,
        reason_codes=score.reason_codes,
        trials=score.trials,
        said=summary,
    )


def _build_result(part: Part, score: Score, weights: PartWeights) -> PartResult:
    return replace(
        _build_verdict(part, score, _describe_result(part, score)),
        score=score.value,
        best=score.best,
        weight=get_part_weight(part, weights),
        interval=score.interval,
        mutation=score.mutation,
    )


def _describe_result(part: Part, score: Score) -> str:
    counts = score.counts
    noun = {"mutation": "mutation", "replay": "session"}.get(part, "cell")
    passed, total = counts.get("pass", 0), score.total
    if score.mutation is not None:  # probes are shown next to them
        passed = sum(one.passed for one in score.mutation.types)
        total = sum(one.judged + one.undecided for one in score.mutation.types)
    undecided = [f"{counts[kind]} {kind}" for kind in ("error", "unproven") if counts.get(kind)]
    return ", ".join((f"{passed} of {format_plural(total, noun)} passed", *undecided))


def build_skipped(part: Part, why: str, weights: PartWeights, exit_code: int = 0) -> PartResult:
    """Return a part that did not run; with an exit code if the reason lies outside the file."""
    return PartResult(part, weight=get_part_weight(part, weights), skipped=why, exit_code=exit_code)


def conclude_whole(
    whole: RunDir,
    spec: Spec,
    results: Iterable[PartResult],
    *,
    least: float | None,
    duration_s: float,
    reasons: Sequence[Reason] = (),
    notes: Sequence[str] = (),
    outcomes: Iterable[RunOutcome] = (),
) -> Overall:
    """Combine all parts: weights, overall score and verdict, with the warnings of all outcomes."""
    by = {result.part: result for result in results}
    parts = [by[part] for part in ORDER if part in by]
    manifest = whole.read_manifest()
    shard = str(manifest.options.select.shard or "")
    score = combine_shard_parts(parts, shard) if shard else compute_overall_score(parts, least, reasons)
    return Overall(
        run=whole.id,
        score=score.value,
        passed=score.exit_code == 0 and not shard,
        exit_code=score.exit_code,
        parts=score.parts,
        reasons=score.reasons,
        min_score=least,
        notes=tuple(notes),
        warnings=tuple(dict.fromkeys(warning for outcome in outcomes for warning in outcome.run.warnings)),
        spec_path=spec.path,
        name=spec.name,
        seed=spec.seed,
        started=manifest.started,
        duration_s=duration_s,
        shard=shard,
    )


def store_overall(whole: RunDir, result: Overall) -> None:
    """Write `overall.json`, the result at the end of the run, and seal it. `run.json` names the parts that ran."""
    write_json(whole.path / OVERALL, replace(result, seal=_seal(whole, result)))
    whole.write_manifest(replace(whole.read_manifest(), concluded=tuple(part.path.name for part in whole.parts)))


def forget_overall(whole: RunDir) -> None:
    """Remove the earlier result of a resumed run: nobody must mistake it for the new one."""
    whole.write_manifest(replace(whole.read_manifest(), concluded=()))
    (whole.path / OVERALL).unlink(missing_ok=True)


def read_overall(whole: RunDir) -> Overall | None:
    """Return the stored result; None if the run has one part or was not concluded. Raise UserError if it was changed
    since.
    """
    check_parts(whole)
    path = whole.path / OVERALL
    if not path.is_file():
        if whole.read_manifest().concluded:
            raise _build_tampering_error(whole, f"{OVERALL} is missing, although the run wrote it", _COMPUTE)
        return None
    stored = read_json(path, create_decoder(Overall))
    if stored.seal != _seal(whole, stored):
        raise _build_tampering_error(whole, f"{OVERALL} or a part changed after the run wrote it", _COMPUTE)
    return stored


def is_own_part(whole: RunDir, part: RunDir) -> bool:
    """Return whether a stored part can be resumed. If it links to a reused run, only the seal of the overall result
    proves which run that was.
    """
    if not part.path.is_symlink():
        return os.path.lexists(part.path)
    try:
        return read_overall(whole) is not None
    except UserError:
        return False


_COMPUTE = "resume it to compute it again: {resume}"
_REPEAT = "restore it, or run it again: {resume} --force"


def check_parts(whole: RunDir) -> None:
    """Raise UserError if a part that has run is missing, or is of another run."""
    manifest = whole.read_manifest()
    for name in dict.fromkeys((*manifest.concluded, *(part.path.name for part in whole.parts))):
        part = whole.get_part(name)
        if not (part.path / "run.json").is_file():
            raise _build_tampering_error(whole, f"its {name} part is missing", _REPEAT)
        # `ci --cached` links a part to the run that it reuses; which one is in the seal of the overall result.
        if not part.path.is_symlink() and (run_id := part.read_manifest().id) != f"{manifest.id}/{name}":
            raise _build_tampering_error(whole, f"its {name} part is {run_id}", _REPEAT)


def _build_tampering_error(whole: RunDir, why: str, hint: str) -> UserError:
    resume = f"{get_run_command('ci')} --resume {quote(format_name(whole.path))}"
    return UserError(
        f"run {whole.id}: {why}; it may have been tampered with", code="run-tampered", hint=hint.format(resume=resume)
    )


def get_single_part(run: RunDir) -> RunDir:
    """Return the run, or its only part. Raise UsageError if it has several parts, UserError if one of them was
    removed.
    """
    if run.read_manifest().parts:
        read_overall(run)
    return run.get_single()


def _seal(whole: RunDir, result: Overall) -> str:
    """Return the seal for the result of these very parts: files of another run have valid seals of their own."""
    parts = [(part.path.name, ended.seal if (ended := part.read_end()) else "") for part in whole.parts]
    return digest(encode((whole.read_manifest().id, parts, replace(result, seal=""))), 16)
