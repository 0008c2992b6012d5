from __future__ import annotations

from holdfast.hunt.result import HuntedCause, merge_causes
from holdfast.report.terminal.hunt import format_cause


def _cause(prompt: str, rule: str) -> HuntedCause:
    faults = ({"plane": "tool", "target": "charge", "on_call": 1, "mode": "lost_reply"},)
    scenario = {"name": "hunt-1", "tool_faults": [{"tool": "charge", "mode": "lost_reply", "on_call": 1}]}
    return HuntedCause("hunt-1", (rule,), "done-twice", faults, 2, 2, 0, 3, scenario, "t", False, "", prompt, (prompt,))


def test_a_cause_on_two_prompts_is_one_block_that_lists_them() -> None:
    (cause,) = merge_causes([_cause("Charge it", "once"), _cause("Pay it", "once"), _cause("Go", "answers")])
    assert (cause.rules, cause.prompts) == (("once", "answers"), ("Charge it", "Pay it", "Go"))
    assert (cause.failed, cause.runs, cause.calm_failed, cause.calm_runs) == (6, 6, 0, 9)
    shown = list(format_cause(cause, "shop.yaml"))
    assert shown[1:4] == ["  asked      Charge it", "             Pay it", "             Go"]
