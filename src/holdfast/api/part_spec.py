"""Derives a part's tasks from its spec before anything runs: mutations of the golden prompts, sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.model.run_warning import RunWarning
from holdfast.model.spec import Spec
from holdfast.model.task import Task
from holdfast.model.when import is_applicable


def build_part(spec: Spec, environ: Mapping[str, str]) -> tuple[Spec, tuple[RunWarning, ...]]:
    """Return the spec with its tasks, and warnings."""
    if spec.part == "replay":
        return _build_replay(spec, environ)
    if spec.part != "mutation":
        return spec, ()
    from holdfast.mutate.made import make_tasks

    made = make_tasks(spec, environ)
    probes = [Task((probe,), "probe") for rule in spec.invariants for probe in rule.probes]
    tasks = (*made.tasks, *dict.fromkeys(probes))
    spec = replace(spec, tasks=tasks, invariants=tuple(rule.with_task_probes() for rule in spec.invariants))
    return spec, (*made.warnings, *_warn_unjudged(spec))


def _warn_unjudged(spec: Spec) -> Iterator[RunWarning]:
    """Warn about mutation types that no rule judges in the weather of this run: the agent is not asked."""
    rules = [rule for rule in spec.invariants if any(is_applicable(rule.when, one) for one in spec.scenarios)]
    idle = Counter(
        task.variation.mutation
        for task in spec.tasks
        if task.variation is not UNSET and not any(rule.is_judging(task) for rule in rules)
    )
    for name, count in idle.items():
        many = f"{count} mutation{'' if count == 1 else 's'}"
        yield RunWarning("mutations-unjudged", f"{name}: {many} not asked, as no rule judges them in this run")


def _build_replay(spec: Spec, environ: Mapping[str, str]) -> tuple[Spec, tuple[RunWarning, ...]]:
    """Return the sessions of the file, and of its sources that are imported at each run."""
    from datetime import UTC, datetime

    from holdfast.replay.derived_spec import derive_spec
    from holdfast.replay.session_list import list_sessions

    return derive_spec(spec, list_sessions(spec, environ, datetime.now(UTC)), live=False)
