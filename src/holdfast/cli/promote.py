"""holdfast promote TRIAL"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from msgspec.structs import replace

from holdfast.api.job import load_part, prepare_job, run_job
from holdfast.cli import options as shared
from holdfast.cli.replay_sessions import FOLDER
from holdfast.cli.stored import CAUSE, find_cause, find_trial
from holdfast.errors import NothingProven, UsageError
from holdfast.folders import get_runs_folder, shorten_path
from holdfast.hunt.result import HuntedCause
from holdfast.model.codec import encode_canonical
from holdfast.model.observation import Observation
from holdfast.model.run import TracedTrial
from holdfast.model.session import RecordedSession
from holdfast.model.spec import BuiltText
from holdfast.model.verdict import Verdict
from holdfast.plan import RunOptions
from holdfast.planes.recorded_tools import replace_generated
from holdfast.replay.derived_spec import derive_spec
from holdfast.replay.foreign_trace import SessionsFound
from holdfast.replay.session_file import add_session, write_sessions
from holdfast.replay.session_list import read_path
from holdfast.replay.stored_run import read_run_sessions, read_stored_trial
from holdfast.replay.trial_session import list_failed_rules
from holdfast.report.formats.files import write_atomically
from holdfast.report.safe import to_one_line
from holdfast.runner.outcome import RunOutcome
from holdfast.spec.rules.rules import is_state_rule
from holdfast.store.rundir import RunDir

_UNSTEADY = "promote a trial before you fix the agent; one that does not fail every time cannot be promoted"
_OTHER_RULES = (
    "sessions use only the contract's rules: copy the rule that failed from invariants to contract.invariants"
)


@click.command(name="promote")
@shared.runs_option
@click.argument("trial")
@click.argument("run", required=False, shell_complete=shared.complete_from("runs"))
@click.option("--force", is_flag=True, help="Overwrite an existing session file.")
def command(trial: str, run: str | None, force: bool) -> int:
    """Turn a failed trial, or a cause that a hunt found, into a session that the spec replays from now on.

    The session is replayed once first, and refused if the recorded failure does not come back. It is written to
    replays/ next to the spec, and its name is added to replays.sessions: only lines are added there. Without RUN,
    Holdfast uses the newest run that has the trial.

    \b
      holdfast promote 7f3a2c91d044
      holdfast promote 7f3a 0007
      holdfast promote hunt-6a569ef6
    """
    stored, trial = _find_run(trial, run)
    session = replace(_find_session(stored, trial), contract="")
    _replay_once(stored, replace(session, failed_rules=()))
    spec = stored.read_manifest().original
    folder = (spec.parent if spec.is_file() else Path.cwd()) / FOLDER
    files = write_sessions((session,), folder, force=force)
    print(f"{shorten_path(files.all_files[0])} replays trial {session.id}: replayed once, it failed again")
    _add_session(spec, files.all_files[0], by_hand=bool(stored.read_manifest().built))
    return 0


def _find_run(trial: str, run: str | None) -> tuple[RunDir, str]:
    """Find the run with the trial, or with a trial that shows the cause, and the trial's id."""
    if not trial:
        hint = "give its id, or its first characters; the report shows it"
        raise UsageError("no trial was given", hint=hint, code="argument-missing")
    if trial.startswith(CAUSE):
        hunt, cause = find_cause(trial)
        _check_prompt(hunt, cause)
        return hunt, cause.trial
    place = find_trial(trial) if run is None else None
    if place is not None:  # the whole run: a trial may have failed in another of its parts
        run, trial = place[0].id.partition("/")[0], place[1]
    return RunDir.find(get_runs_folder(), run or "latest"), trial


def _check_prompt(run: RunDir, cause: HuntedCause) -> None:
    """Reject a cause whose prompt is no longer in the spec: its session would test a question that no one asks."""
    manifest = run.read_manifest()
    if manifest.built:  # the prompts of a spec that Python builds are known only there
        return
    spec, _ = load_part(manifest.original, RunOptions(part="hunt"))
    if not {task.prompt for task in spec.tasks} & {cause.prompt, *cause.prompts}:
        hint = "holdfast hunt tries the cause with the present prompts"
        raise UsageError(
            f"{cause.id} was not promoted: its prompt is no longer in {spec.path}", hint=hint, code="cause-orphaned"
        )


def _find_session(run: RunDir, trial: str) -> RecordedSession:
    """Find the session of the failed trial; raise UsageError if none or several match."""
    sessions = read_run_sessions(run, run.path, environ=os.environ, failed_only=True, trial=trial)
    if len(sessions.sessions) == 1:
        for note in sessions.notes:
            print(f"note: {to_one_line(note)}", file=sys.stderr)
        return sessions.sessions[0]
    if sessions.sessions:
        ids = ", ".join(one.id for one in sessions.sessions[:8])
        raise UsageError(
            f"more than one failed trial of run {run.id} begins with {trial}",
            hint=f"available: {ids}",
            code="trial-ambiguous",
        )
    if sessions.left_out:
        raise UsageError(
            f"trial {sessions.left_out[0].name} cannot become a session: {sessions.left_out[0].why}",
            code="session-unusable",
        )
    failed = read_run_sessions(run, run.path, environ=os.environ, failed_only=True).sessions
    hint = f"those that failed: {', '.join(one.id for one in failed[:8])}" if failed else "none of its trials failed"
    raise UsageError(f"run {run.id} has no failed trial {trial}", hint=hint, code="trial-unknown")


def _build_refusal(session: RecordedSession, why: str, hint: str = _UNSTEADY) -> UsageError:
    return UsageError(f"trial {session.id} was not promoted: {why}", hint=hint, code="session-unusable")


def _replay_once(run: RunDir, session: RecordedSession) -> None:
    """Replay the session once; raise UsageError if the recorded failure does not recur."""
    manifest = run.read_manifest()
    before = manifest.options
    options = RunOptions(part="replay", replicas=1, replay=before.replay, backend=before.backend, preflight=False)
    built = BuiltText((run.path / "spec.yaml").read_text(), manifest.built) if manifest.built else None
    spec, _ = load_part(manifest.original, options, built)
    with TemporaryDirectory(prefix="holdfast-promote-") as scratch:
        files = write_sessions((session,), Path(scratch) / "replays", force=True)
        try:
            derived, _ = derive_spec(spec, SessionsFound(read_path(files.all_files[0])), live=False)
        except NothingProven as nothing:
            raise _build_refusal(session, str(nothing), _OTHER_RULES) from None
        job = prepare_job(derived, options, ())
        outcome = run_job(job, lambda _: None, report=False, runs=Path(scratch) / "runs")
        # Rules on the state that the agent leaves, without asking a model.
        on_state = frozenset(rule.id for rule in derived.invariants if is_state_rule(rule))
        _compare_failures(read_stored_trial(run, session.id, os.environ), outcome, on_state, session)


def _compare_failures(
    before: TracedTrial, outcome: RunOutcome, on_state: frozenset[str], session: RecordedSession
) -> None:
    """Compare the replay with the trial; raise UsageError if it did not fail in the same way."""
    # From the clearest difference to the finest: it could not run; a rule was not judged; a rule held; it failed for
    # another reason; a fault missed its call; it ended differently. The first one found is reported.
    now = next(one for one in outcome.cells.read_traced() if one.trial.kind == "contract")
    again, case = list_failed_rules(now), outcome.run.cases[0].case
    if now.seen.error:
        raise _build_refusal(session, f"it could not be replayed: {now.seen.error}")
    lost = [rule for rule in list_failed_rules(before) if rule not in again]
    unjudged = (
        set(lost)
        - {verdict.invariant for verdict in now.verdicts}
        - {f"forbidden {one.rule}" for one in now.seen.forbidden}
    )
    if unjudged:
        why = f"the contract does not contain {', '.join(sorted(unjudged))}, which failed"
        raise _build_refusal(session, why, _OTHER_RULES)
    if lost or case.status != "fail":
        unknown = next((f": {use.call}" for use in now.seen.recorded if use.refused), "")
        why = f" ({case.reason}{unknown})" if case.reason else ""
        why = f"in the replay, {', '.join(lost) or 'it'} did not fail again{why}"
        raise _build_refusal(session, why, _build_hint(lost, on_state, session))
    if other := _find_changed_finding(before, now, on_state):
        was, differs = other
        why = f"in the replay, {was.invariant} failed for another reason: {differs.reason}; before: {was.reason}"
        raise _build_refusal(session, why, _build_hint([was.invariant], on_state, session))
    if unmet := _find_unmet_faults(before.seen, now.seen):
        raise _build_refusal(session, f"in the replay, {', '.join(unmet)} did not hit the call that it hit before")
    if now.seen.ending != before.seen.ending:
        why = f"in the replay, it ended as {now.seen.ending!r}, and before as {before.seen.ending!r}"
        raise _build_refusal(session, why)


def _find_unmet_faults(before: Observation, now: Observation) -> list[str]:
    """Return the faults that did not hit the same calls as before. Further calls do not matter.

    If calls overlap, their order is unknown: then each fault only has to be met.
    """
    hit = [_group_hits(before), _group_hits(now)]
    if before.concurrent or now.concurrent:
        return [mode for (index, mode) in hit[0] if (index, mode) not in hit[1]]
    pairs = ((fault, calls, hit[1].get(fault, [])) for fault, calls in hit[0].items())
    return [mode for (_, mode), was, now_hit in pairs if not now_hit or was[: len(now_hit)] != now_hit[: len(was)]]


def _group_hits(observation: Observation) -> dict[tuple[int, str], list[tuple[str, int]]]:
    """Group by fault the calls that it hit."""
    hits: dict[tuple[int, str], list[tuple[str, int]]] = {}
    for one in observation.met:
        hits.setdefault((one.index, one.mode), []).append((replace_generated(one.target), one.call))
    return hits


def _find_changed_finding(
    before: TracedTrial, now: TracedTrial, on_state: frozenset[str]
) -> tuple[Verdict, Verdict] | None:
    """Return the first rule that failed with another finding: another cause, or another final state.

    The agent's words may differ between trials; the state it leaves must be the same, including counts.
    """
    failed = {one.invariant: one for one in now.verdicts if one.outcome == "fail"}
    for was in before.verdicts:
        if was.outcome != "fail" or was.invariant not in failed:
            continue
        one = failed[was.invariant]
        same = was.code == one.code and bool(was.ended_by) == bool(one.ended_by)
        if not same or (was.invariant in on_state and _build_state_key(was) != _build_state_key(one)):
            return was, one
    return None


_TIMES = re.compile(r"\b(\d+(\.\d+)? ?(ms|s|sec|seconds)|\d\d?:\d\d(:\d\d)?(\.\d+)?)\b")
"""Durations and times of day, which programs print."""


def _build_state_key(verdict: Verdict) -> tuple[tuple[str, ...], str]:
    """Build a key of a state rule's finding, without the parts that differ in every trial."""
    return verdict.key, _TIMES.sub("#", replace_generated(encode_canonical(verdict.details).decode()))


def _build_hint(rules: Collection[str], on_state: frozenset[str], session: RecordedSession) -> str:
    """Explain why rules may not fail as before: tools answered from the recording change nothing in the world."""
    if session.responses and on_state & set(rules):
        tools = ", ".join(dict.fromkeys(one.tool for one in session.responses))
        again = f"holdfast run --trial {session.id} repeats it"
        return f"a replay answers {tools} from the recording, which changes nothing in the world; {again}"
    return _UNSTEADY


def _add_session(spec: Path, session: Path, *, by_hand: bool) -> None:
    """Add the session to the spec. If new lines are not enough, or the spec is Python code, print what to write."""
    name = Path(os.path.relpath(session, spec.parent)).as_posix()
    text = spec.read_bytes().decode("utf-8", "replace") if spec.is_file() and not by_hand else ""
    extended = add_session(text, name) if text else None
    if extended is None:
        print(f"Add it to {shorten_path(spec)} by hand:\n\nreplays:\n  sessions:\n    - file: {name}")
    elif extended == text:
        print(f"{shorten_path(spec)} already lists it")
    else:
        write_atomically(spec, [extended.encode()])
        print(f"{shorten_path(spec)}: added to replays.sessions")
