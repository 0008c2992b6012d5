"""The codes of reasons for a run's verdict. Scripts and tests rely on them; the sentences may change."""

from __future__ import annotations

from collections.abc import Mapping

REASON_CODES: Mapping[str, str] = {
    "baseline-unusable": "the baseline could not be compared",
    "below-minimum": "the score is below the minimum",
    "cases-failed": "cases failed: tasks, mutations or sessions",
    "cases-undecided": "cases are undecided because their rules are unproven",
    "cause-orphaned": "the prompt of a known cause is no longer in the file, so the cause cannot be replayed",
    "cells-failed": "cells of ordinary rules failed",
    "critical-cells-failed": "cells of critical rules failed",
    "critical-rule-failed": "a critical rule failed on a mutation or a session",
    "critical-rule-uncounted": "nothing that a critical rule judges counted",
    "harness-errors": "more harness errors than `--max-errors` allows",
    "hunt-budget": "a budget ended the hunt in its calm trials",
    "hunt-calm-fails": "a rule fails without any fault, so a hunt cannot start",
    "hunt-cause": "a hunt found faults that break a rule",
    "hunt-no-calls": "the agent made no call that Holdfast can see, so a hunt has nowhere to place a fault",
    "hunt-no-rules": "no rule is judged in calm, so a hunt has nothing to start from",
    "hunt-no-writes": "no write of the agent can meet a mode of `--sweep`",
    "hunt-open": "a hunt found no cause, and left faults untried or met none",
    "hunt-unconcluded": "a hunt did not come to a result",
    "hunt-unproven": "known causes of a hunt were not tried, not met, or failed too rarely to tell",
    "interrupted": "the run was interrupted",
    "map-only": "a map asks in calm only: it shows where faults could act, and proves nothing",
    "no-score": "there is no score to compare with the minimum",
    "nothing-counted": "no cell or case was decided",
    "one-shard": "this is one shard; `holdfast merge` decides",
    "part-failed": "a part of a `ci` run failed",
    "trials-not-run": "fail-fast left trials out",
    "unproven-strict": "something is unproven, and `--strict` allows none",
    "vacuous-scenario": "no trial of a scenario met any of its faults",
    "worse-than-baseline": "a rule is worse than in the baseline",
}
"""Every code in `reason_codes` of a score and its meaning. `docs/codes.md` is generated from it."""
