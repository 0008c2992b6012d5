"""What a part makes of its spec before anything is run: mutations of the golden prompts, sessions."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from holdfast.model.spec import Invariant, Spec
from holdfast.model.task import Task


def made_part(spec: Spec, environ: Mapping[str, str]) -> tuple[Spec, tuple[str, ...]]:
    """The spec with what is asked, and what the user should know of it."""
    if spec.part == "replay":
        return _replayed(spec, environ)
    if spec.part != "mutation":
        return spec, ()
    from holdfast.mutate.made import mutated

    made = mutated(spec, environ)
    probes = [Task((probe,), "probe") for rule in spec.invariants for probe in rule.probes]
    tasks = (*made.tasks, *dict.fromkeys(probes))
    return replace(spec, tasks=tasks, invariants=tuple(map(_on_tasks, spec.invariants))), made.notes


def _replayed(spec: Spec, environ: Mapping[str, str]) -> tuple[Spec, tuple[str, ...]]:
    """The sessions of the file, and of its sources that are imported at each run."""
    from datetime import UTC, datetime

    from holdfast.replay.made import replayed
    from holdfast.replay.session_list import sessions_of

    return replayed(spec, sessions_of(spec, environ, datetime.now(UTC)), live=False)


def _on_tasks(rule: Invariant) -> Invariant:
    """A rule with probes is judged on them alone; they are tasks like the others here."""
    return replace(rule, probes=(), asked_only=rule.probes) if rule.probes else rule
