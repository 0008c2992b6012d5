"""Whether masking may have changed a verdict on a stored observation."""

from __future__ import annotations

from holdfast.judge.rule import RuleJudge
from holdfast.model.codec import encode
from holdfast.model.observation import MASK, Observation
from holdfast.model.trace import TraceEvent
from holdfast.model.verdict import Judgement

_AGAIN = "it cannot be judged again"


def explain_masking(rule: RuleJudge, observation: Observation, control: Observation | None, outcome: Judgement) -> str:
    """Return why this outcome may differ from that of the run itself; empty if it does not."""
    if outcome not in ("pass", "fail"):
        return ""
    if "answer" in rule.texts and (rule.reads == "state" or outcome == ("pass" if rule.negative else "fail")):
        if observation.masked:
            return f"a secret was masked in this answer; {_AGAIN}"
        if rule.compares and control is not None and control.masked:
            return f"a secret was masked in the answer that this one is compared with; {_AGAIN}"
    if "evidence" in rule.texts and MASK.encode() in encode(observation.evidence.get(rule.id)):
        return f"a secret was masked in the evidence recorded for this rule; {_AGAIN}"
    if any(_is_masked(event, rule.texts) for event in observation.trace):
        return f"a secret was masked in a call of the agent; {_AGAIN}"
    return ""


def _is_masked(event: TraceEvent, texts: tuple[str, ...]) -> bool:
    """Whether the event has masked text that a rule reads; of a model call, no rule reads the request."""
    if event.event_type == "llm_call":
        return False
    arguments = "arguments" in texts and (MASK in event.input or MASK in event.idempotency)
    return arguments or ("target" in texts and MASK in event.tool)
