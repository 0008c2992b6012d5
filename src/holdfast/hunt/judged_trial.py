"""The facts about a trial that a planner gets: values only, never words."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.hunt.lineage import Lineage, trace_lineage
from holdfast.hunt.sites import list_trial_sites, number_logical_calls
from holdfast.model.judged import JudgedTrial, VerdictCode
from holdfast.model.observation import Observation
from holdfast.model.verdict import Verdict


def build_judged_trial(observation: Observation, verdicts: Sequence[Verdict]) -> JudgedTrial:
    """Return the facts about the trial that a planner may use."""
    codes = tuple([VerdictCode(one.invariant, one.outcome, one.code, one.key) for one in verdicts])
    made = [events[0] for events, _ in number_logical_calls(observation.trace)]
    sites = list_trial_sites(observation)
    # Only calm trials are asked what feeds what, and following every value takes longer than planning the next trial.
    lineage = Lineage((), (), ()) if observation.ledger else trace_lineage(observation)
    first = len(sites) - len(made)
    arrived = tuple(n for n, event in enumerate(made, first) if event.write and not event.unsent)
    statements = sum(event.type == "db_write" for event in observation.audit)
    return JudgedTrial(
        observation.trial,
        observation.ending,
        codes,
        observation.ledger,
        sites,
        tuple(n for n in arrived if not made[n - first].failed),
        lineage.feeds,
        not any(event.cost is not None and event.cost.billed and not event.script for event in made),
        bool(observation.error),
        sum(event.write and not event.unsent for event in observation.trace) + statements,
        {one.invariant: one.reason for one in verdicts if one.outcome == "fail"},
        arrived,
        statements,
        order=lineage.order,
        rows=lineage.rows,
    )
