"""From a finished or stored run to its score and the view that reports render."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from holdfast import plugins
from holdfast.model.capabilities import build_missing
from holdfast.model.codec import encode_canonical
from holdfast.model.codes import RunNote
from holdfast.model.run import CellRow, Run
from holdfast.model.score import Case, Score
from holdfast.model.spec import Spec
from holdfast.model.world import Isolation
from holdfast.plan import Plan, RunOptions
from holdfast.plugins import DEFAULT_BACKEND
from holdfast.score import ScoreOptions, Tally
from holdfast.score.overall import combine_with_cases, combine_with_forbidden
from holdfast.score.resilience import Reason, score_contract
from holdfast.store.git_commit import get_repository_path
from holdfast.store.rundir import Manifest, RunDir, RunEnd, write_json
from holdfast.store.view import Repetition, StoredCells, build_run_command
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.hunt.result import HuntResult


class RunOutcome(Struct, frozen=True):
    """A run that has ended, with its score and its view for reports."""

    run: Run
    score: Score
    cells: StoredCells
    unwritten: tuple[str, ...] = ()
    """Why requested reports are missing."""

    def close(self) -> None:
        """Close the run's files."""
        self.cells.close()


def conclude(
    rundir: RunDir,
    spec: Spec,
    plan: Plan,
    tally: Tally,
    options: RunOptions,
    *,
    ended: RunEnd,
    verdicts: Path | None = None,
    judged_by: str = "",
    page: Path | None = None,
) -> RunOutcome:
    """Score the tally and build the view.

    `verdicts` is the file of a rejudged run, `judged_by` names the rules used, `page` is the path of its HTML page.
    """
    rules = build_score_options(options, ended, planned=len(plan.trials))
    contract, deciding = score_contract(tally, rules)
    cases = tuple(tally.cases.iter_cases()) if spec.by_cases else ()
    score = _compute_score(spec, tally, cases, contract, deciding, rules)
    manifest = rundir.read_manifest()
    again = _build_repetition(spec, options, manifest.options)
    cells = StoredCells(rundir, plan, tally, again, verdicts or rundir.get_verdict_file())
    judged_from = f"{rundir.id}, judged again by {judged_by}" if verdicts else ""
    matrix = spec.matrix or not tally.decides_cases
    run = _build_view(rundir, manifest, spec, plan, score, cells if matrix else (), ended)
    run = replace(run, judged_from=judged_from, page=shorten_path(page) if page else "")
    if spec.by_cases:
        from holdfast.store.case_view import StoredCases

        run = replace(run, cases=StoredCases(cells.files, cases), contract=contract if matrix else None)
    outcome = RunOutcome(run, score, cells)
    return apply_hunt(outcome, rundir) if spec.part == "hunt" else outcome


def apply_hunt(outcome: RunOutcome, rundir: RunDir, found: HuntResult | None = None) -> RunOutcome:
    """Return the outcome of a hunt, by what it found; without that, by its stored result."""
    from holdfast.runner.hunt_view import add_hunt, read_hunt  # other runs do not need it

    run = add_hunt(outcome.run, rundir, outcome.cells, found or read_hunt(rundir))
    return replace(outcome, run=run, score=run.score)


def _compute_score(
    spec: Spec,
    tally: Tally,
    cases: tuple[Case, ...],
    contract: Score,
    deciding: tuple[Reason, ...],
    rules: ScoreOptions,
) -> Score:
    """Score the tasks, the cells or both, depending on the part that ran."""
    if spec.part in ("mutation", "replay"):
        from holdfast.score.task_score import score_tasks

        score = score_tasks(spec, cases, tally, rules)
    elif not tally.decides_cases:
        score = combine_with_forbidden(contract, cases, rules)
    else:
        score = combine_with_cases(contract, deciding if spec.matrix else None, cases, rules)
    if not rules.shard:
        return score
    from holdfast.score.overall import score_shard

    return score_shard(score, rules)


def _build_repetition(spec: Spec, options: RunOptions, stored: RunOptions) -> Repetition:
    """Return the command that runs a cell again."""
    again = build_run_command(
        spec.path,
        part=spec.part,
        seed=spec.seed,
        replicas=options.replicas,
        profile=options.profile,
        recording=None if stored.replay is None else shorten_path(stored.replay),
        chaos=stored.chaos,
        chaos_profile=stored.chaos_profile,
        sessions=None if stored.sessions is None else shorten_path(stored.sessions),
        live=stored.live,
        backend=stored.backend if spec.world and stored.has_option("backend") else None,
    )
    python = "" if spec.built is None else f"{spec.path}:{spec.built.line}"
    return Repetition(again, python, spec.seed, hunts=spec.part == "hunt")


def list_unrun_cases(spec: Spec, plan: Plan, why: str) -> Iterator[Case]:
    """Yield the cases of a plan that never started because the preflight failed."""
    planned = (trial for trial in plan.trials if trial.invariant == "*") if spec.by_cases else ()
    first = {(one.scenario.name, one.task, encode_canonical(one.params)): one for one in planned}
    for one in first.values():
        yield Case(one.scenario.name, "error", one.task.prompt, one.params, reason=why)


def store_score(rundir: RunDir, score: Score) -> None:
    """Write `score.json`, the score at the end of the run. Viewing or rejudging the run leaves it unchanged."""
    write_json(rundir.path / "score.json", score)


def build_score_options(options: RunOptions, ended: RunEnd, *, planned: int) -> ScoreOptions:
    """Return the options that the verdict depends on besides cells and spec."""
    return ScoreOptions(
        min_score=options.min_score,
        strict=options.strict,
        allow_vacuous=options.allow_vacuous,
        max_errors=options.max_errors,
        interrupted=not ended.complete,
        unrun=ended.unrun,
        unasked=ended.unasked,
        planned=planned,
        shard=str(options.select.shard or ""),
    )


def _build_view(
    rundir: RunDir, manifest: Manifest, spec: Spec, plan: Plan, score: Score, cells: Sequence[CellRow], ended: RunEnd
) -> Run:
    stopped, backend = _describe_stop(ended, score.trials, auto=manifest.options.auto), manifest.options.backend
    background = (*_note_isolation(spec, backend), *ended.background, *_note_missing_isolation(ended))
    stop_note = (RunNote("stopped", stopped),) if stopped else ()
    return Run(
        id=rundir.id,
        path=shorten_path(rundir.path),
        name=spec.name or Path(spec.path).name,
        spec_path=spec.path,
        seed=spec.seed,
        score=score,
        invariants=tuple(plan.invariants),
        scenarios=tuple(plan.scenarios),
        cells=cells,
        complete=ended.complete and not ended.unrun and not ended.unasked,
        warnings=ended.warnings,
        notes=(*_build_notes(manifest.options, spec, plan, score), *ended.notes, *stop_note, *background),
        background=background,
        sandbox=_describe_exposure(spec, backend),
        stateful=ended.stateful,
        stopped=stopped,
        isolation=describe_isolation(spec, manifest.options.backend),
        promises=(*ended.isolation, *_note_self_reported(spec)),
        description=spec.description,
        started=manifest.started,
        duration_s=ended.duration_s,
        version=__version__,
        spec_digest=manifest.spec_digest,
        agent_digest=manifest.agent_digest,
        params=spec.params,
        source=get_repository_path(manifest.original),
        gateway=spec.agent.gateway,
        part=spec.part,
        cell_rules=frozenset(spec.cell_rules),
    )


def _build_notes(options: RunOptions, spec: Spec, plan: Plan, score: Score) -> Iterator[RunNote]:
    """Yield notes about the spec and the options of the run."""
    yield from _note_faults(spec)
    yield from _note_replay(options)
    yield from _note_script(score)
    yield from _note_selection(options)
    yield from _note_undecided_cases(spec, plan)


def _note_self_reported(spec: Spec) -> Iterator[Isolation]:
    """Note that calls reported by the agent's own process have no other witness."""
    agent = spec.agent
    if spec.world is not None and agent.type != "http" and (agent.tools or agent.tool_registry or agent.llm):
        yield build_missing("functions-unproven")


def _note_missing_isolation(ended: RunEnd) -> Iterator[RunNote]:
    """Note isolation features that the worlds of single trials lacked, unless the sandbox's own note names them.

    A limit that nobody set is not missing.
    """
    known = {feature for note in ended.background if note.code == "sandbox" for feature in note.about}
    missing = [one for one in ended.isolation if one.asked and not one.enforced and one.feature not in known]
    if missing:
        features = (f"{one.feature} ({one.why})" if one.why else one.feature for one in missing)
        yield RunNote("not-enforced", f"not enforced in this world: {', '.join(features)}")


def _describe_stop(ended: RunEnd, planned: int, *, auto: bool) -> str:
    """Describe what a budget left out."""
    if not ended.stopped_by:
        return ""
    left = (
        f"at least {ended.unasked} more would have been"
        if auto
        else f"{ended.unasked} of {planned + ended.unasked} were not"
    )
    return (
        f"stopped by {ended.stopped_by}: {planned} trial{'' if planned == 1 else 's'} asked, {left}; --resume continues"
    )


def _note_replay(options: RunOptions) -> Iterator[RunNote]:
    if options.replay is not None:
        yield RunNote("recording", f"model calls were answered from the recording {shorten_path(options.replay)}")


def _note_script(score: Score) -> Iterator[RunNote]:
    if score.spent is not None and score.spent.scripted:
        some = (
            "the model was a script" if score.spent.is_only_scripted else "some model calls were answered by a script"
        )
        yield RunNote("scripted", f"{some}: this tests the program around it, not a model")


def _note_selection(options: RunOptions) -> Iterator[RunNote]:
    """Say which part of the spec was selected, because a passing part does not prove the whole."""
    keywords = options.select.keywords
    for option, names in (
        ("-k", (keywords,) if keywords else ()),
        ("--lf", ("(what failed before)",) if options.select.failed else ()),
        ("cells", (str(len(options.select.cells)),) if options.select.cells else ()),
        ("--scenario", options.select.scenarios),
        ("--invariant", options.select.invariants),
        ("--trial", options.select.trials),
        ("--shard", (str(options.select.shard),) if options.select.shard else ()),
    ):
        if names:
            what = "contract" if options.part == "contract" else "file"
            yield RunNote("selection", f"a part of the {what}: {' '.join(f'{option} {name}' for name in names)}")


def _note_undecided_cases(spec: Spec, plan: Plan) -> Iterator[RunNote]:
    if spec.part == "scenario" and not plan.decides_cases:
        text = "rules of the cases were left out: no case is decided, and each cell is judged on its own"
        yield RunNote("cases-undecided", text)


def _note_faults(spec: Spec) -> Iterator[RunNote]:
    """Yield notes on what the faults of this spec could not do to its agent."""
    if spec.agent.simulate == "answer" and any(scenario.on_calls for scenario in spec.scenarios):
        yield RunNote("simulated", "simulated: tool and model faults damaged the answer, not the agent's own calls")
    for scenario in spec.scenarios:
        if scenario.left_out:
            what = ", ".join(scenario.left_out)
            text = f"{scenario.name}: profile {scenario.profile} is used without {what}, which this agent cannot meet"
            yield RunNote("profile-left-out", text)


def _note_isolation(spec: Spec, backend: str) -> Iterator[RunNote]:
    """Yield notes on how far to trust the observations of this agent."""
    if spec.world is None:
        text = "no sandbox: the agent ran with your rights, your environment and your network"
        yield RunNote("no-sandbox", text)
    elif not _is_isolating(backend):
        yield RunNote("no-sandbox", f"no isolation: the {backend} backend only gives the agent a folder of its own")
    agent = spec.agent
    if agent.type != "http" and (agent.tools or agent.tool_registry or agent.llm):
        text = (
            "tool and model faults act inside the agent's own process: the agent could detect them, "
            "and Holdfast knows only the calls that this process reports"
        )
        yield RunNote("functions-unproven", text)


def _describe_exposure(spec: Spec, backend: str) -> str:
    """Describe weak isolation in a few words."""
    if spec.world is None:
        return "no sandbox: the agent ran with your rights"
    return "" if _is_isolating(backend) else f"no isolation: {backend} backend"


def _is_isolating(backend: str) -> bool:
    """Whether the backend gives the agent its own network and folders; one that is no longer installed did."""
    plugin = plugins.find("sandboxes", backend)
    return plugin is None or bool(plugin.traits.isolates)


def describe_isolation(spec: Spec, backend: str = DEFAULT_BACKEND) -> str:
    """Describe in a few words how trials and cells are isolated from each other."""
    agent = spec.agent
    if spec.world is not None:
        how = f"a fresh {backend} sandbox each" if _is_isolating(backend) else "a fresh folder and process each"
    elif agent.type == "http" and agent.launched:
        how = "a fresh instance each" if agent.isolation == "fresh" else "one instance per slot"
        how += ", reset before each trial" if agent.has_reset else ""
    elif agent.type == "http":
        how = "one running agent" + (", reset before each trial" if agent.has_reset else "")
    else:
        how = {
            "fresh": "fresh process each",
            "worker": "one process per slot",
            "inline": "inside Holdfast's process",
        }[agent.isolation]
    cells = "a trial per cell" if spec.cell_rules else "a trial serves every rule of its scenario"
    return f"{how}; {cells}"


def shorten_path(path: Path) -> str:
    """Return the path relative to the current folder, if that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)
