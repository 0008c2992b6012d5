"""The functions of the Python API: load, build, run, run_async, rejudge."""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.api.entry_points import (
    Caller,
    EntryWork,
    RunInterrupted,
    add_details,
    find_caller,
    run_blocking,
    run_in_thread,
)
from holdfast.api.inline_callables import install_functions
from holdfast.api.job import prepare_job, run_job
from holdfast.api.loaded_spec import LoadedSpec, SpecSource, load_source
from holdfast.api.run_result import RunResult
from holdfast.errors import HoldfastError, UsageError
from holdfast.folders import get_runs_folder, use_runs_folder
from holdfast.model.spec import PartAsked
from holdfast.plan import RunOptions, Select
from holdfast.runner.interrupts import Interrupts
from holdfast.runner.job import Listen
from holdfast.runner.past.rejudge import judge_again
from holdfast.runner.whole import get_single_part
from holdfast.store.rundir import RunDir


def load(
    path: str | os.PathLike[str], *, part: PartAsked | None = None, seed: int | None = None, replicas: int | None = None
) -> LoadedSpec:
    """Return the spec of a file; SpecError with every problem if it cannot be used. Nothing of it runs.

    Without `part` it is the file's contract; without a contract, what `holdfast run` runs.
    """
    return _load(path, RunOptions(seed=seed, replicas=replicas), find_caller(), part)


def build(
    written: Mapping[str, Any], *, part: PartAsked | None = None, seed: int | None = None, replicas: int | None = None
) -> LoadedSpec:
    """Build the spec from a dict with the keys of a file. Errors are the same, and name the line of this call and the
    key.

    Files and modules are looked for next to the file of the calling code; in a notebook, in the working folder.
    """
    return _load(written, RunOptions(seed=seed, replicas=replicas), find_caller(), part)


def run(
    spec: SpecSource,
    *,
    part: PartAsked | None = None,
    seed: int | None = None,
    replicas: int | None = None,
    scenarios: str | Sequence[str] = (),
    invariants: str | Sequence[str] = (),
    trials: str | Sequence[str] = (),
    keywords: str = "",
    concurrency: int | None = None,
    min_score: float | None = None,
    strict: bool = False,
    fail_fast: bool = False,
    preflight: bool = True,
    runs: str | os.PathLike[str] | None = None,
    listen: Listen | None = None,
) -> RunResult:
    """Run a spec to its end: a file, a dict, or a result of `load` and `build`. It is stored below `runs`.

    The options are those of `holdfast contract run`; scenarios and invariants are globs. `listen` receives each event.
    It also works while an event loop is running, as in a notebook. A failing agent is a result, never an exception.
    """
    select = _build_select(scenarios, invariants, trials, keywords)
    options = RunOptions(
        select, concurrency, min_score, strict, fail_fast, preflight=preflight, replicas=replicas, seed=seed
    )
    return _run_now(build_work(spec, options, find_caller(), part=part, runs=_to_path(runs), listen=listen))


def run_async(
    spec: SpecSource,
    *,
    part: PartAsked | None = None,
    seed: int | None = None,
    replicas: int | None = None,
    scenarios: str | Sequence[str] = (),
    invariants: str | Sequence[str] = (),
    trials: str | Sequence[str] = (),
    keywords: str = "",
    concurrency: int | None = None,
    min_score: float | None = None,
    strict: bool = False,
    fail_fast: bool = False,
    preflight: bool = True,
    runs: str | os.PathLike[str] | None = None,
    listen: Listen | None = None,
) -> Coroutine[Any, Any, RunResult]:
    """`run`, to be awaited: the caller's event loop continues meanwhile. `listen` is called in another thread."""
    select = _build_select(scenarios, invariants, trials, keywords)
    options = RunOptions(
        select, concurrency, min_score, strict, fail_fast, preflight=preflight, replicas=replicas, seed=seed
    )
    return _run_work(build_work(spec, options, find_caller(), part=part, runs=_to_path(runs), listen=listen))


def rejudge(
    run: str | RunResult,
    rules: SpecSource | None = None,
    *,
    min_score: float | None = None,
    strict: bool = False,
    runs: str | os.PathLike[str] | None = None,
) -> RunResult:
    """Rejudge a stored run without the agent; `run` is a RunResult, an id, `latest`, or the path of its folder.

    Without `rules` by those that it ran with; otherwise by those of a file, a dict or a loaded spec.
    """
    where = find_caller()

    def work(interrupts: Interrupts) -> RunResult:
        if not isinstance(run, str | RunResult):
            raise UsageError(
                f"{run!r} is not a run",
                hint="give its id, latest, the path of its folder, or a RunResult",
                code="argument-invalid",
            )
        name = str(run.path) if isinstance(run, RunResult) else run
        with use_runs_folder(_to_path(runs)):
            stored = get_single_part(RunDir.find(get_runs_folder().absolute(), name))
        options = RunOptions(min_score=min_score, strict=strict, part=stored.read_manifest().options.part)
        config = built = None
        if rules is not None:
            spec = load_source(rules, options, where, options.part).spec
            config, built = Path(spec.path), spec.built
        return RunResult(judge_again(stored, config=config, options=options, environ=os.environ, built=built))

    return _run_now(work)


def _to_path(runs: str | os.PathLike[str] | None) -> Path | None:
    return None if runs is None else Path(runs)


def build_work(
    source: SpecSource,
    options: RunOptions,
    where: Caller,
    *,
    part: PartAsked | None = None,
    runs: Path | None = None,
    listen: Listen | None = None,
) -> EntryWork[RunResult]:
    """Prepare what `run` does. Everything that can be rejected is rejected here."""
    spec = _load(source, options, where, part)

    def work(interrupts: Interrupts) -> RunResult:
        inline = spec.spec.agent.is_python and spec.spec.agent.isolation == "inline"
        # What is stored with the run is enough to read the same spec from its copy.
        stored = replace(options, part=spec.spec.part, seed=spec.seed, replicas=spec.replicas)
        each, hear = listen is not None, listen or (lambda event: None)
        with use_runs_folder(runs), install_functions(spec.functions, inline=inline):
            job = prepare_job(spec.spec, stored, spec.warnings, _build_environ(spec))
            outcome = run_job(job, hear, report=False, each_trial=each, interrupts=interrupts)
        result = RunResult(outcome)
        if result.exit_code == 2:
            result.close()
            raise RunInterrupted(f"run {result.id} was interrupted; its finished trials are stored")
        return result

    return work


def _build_select(
    scenarios: str | Sequence[str], invariants: str | Sequence[str], trials: str | Sequence[str], keywords: str
) -> Select:
    """Return the selection; a single name stands for a list of one."""
    scenarios, invariants, trials = (
        (names,) if isinstance(names, str) else tuple(names) for names in (scenarios, invariants, trials)
    )
    return Select(scenarios, invariants, trials, keywords)


def _build_environ(spec: LoadedSpec) -> Mapping[str, str]:
    """Return the environment, with the import path of code that names its own function."""
    if spec.spec.built is None:
        return os.environ
    places = [os.path.abspath(place) for place in sys.path if os.path.isdir(place or ".")]
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*([before] if before else []), *places])}


def _load(source: SpecSource, options: RunOptions, where: Caller, part: PartAsked | None) -> LoadedSpec:
    try:
        return load_source(source, options, where, part)
    except HoldfastError as error:
        raise add_details(error).with_traceback(None) from None


def _run_now(work: EntryWork[RunResult]) -> RunResult:
    try:
        return run_blocking(work)
    except HoldfastError as error:
        raise add_details(error).with_traceback(None) from None


async def _run_work(work: EntryWork[RunResult]) -> RunResult:
    try:
        return await run_in_thread(work)
    except HoldfastError as error:
        raise add_details(error).with_traceback(None) from None
