"""The first question, asked without chaos: is the agent there, and does it seem to keep state?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING

from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.model.observation import NO_TEXT, Observation
from holdfast.model.spec import Spec
from holdfast.model.trial import Trial
from holdfast.report.wording import GATEWAY_VARIABLES, NOT_THROUGH_GATEWAY

if TYPE_CHECKING:
    from holdfast.protocols import Executor

STATEFUL = (
    "Warning: No reset_endpoint configured. Contract matrix cells may share state. Results may be contaminated. "
    "Add reset_endpoint to your config for accurate isolation."
)
_HINTS = {
    "http": "set agent.response_path to where the answer is",
    "python": "return text, or a dict or object with content, text, output, answer or message",
}
PAGE = (
    "the agent answers with an HTML page, not with JSON or text: a login form or the page of a proxy looks like this; "
    "every rule judges the page. Check agent.endpoint and agent.headers"
)
NO_PROGRAM = "a rule runs a program that the world does not have, and is an error unless the agent puts it there"
SAMPLES = "(an agent that samples also looks like this)"


async def preflight(executor: Executor, spec: Spec, trial: Trial, warn: Callable[[str], None]) -> Observation:
    """Asks once, or twice where state could leak; raises AgentUnavailable if there is no use in going on."""
    first = await _asked(executor, trial)
    if first.error:
        raise AgentUnavailable(first.error)
    turn = first.turns[-1] if first.turns else None
    if turn is not None and turn.ending == "unreadable" and not turn.detail.startswith(NO_TEXT):
        raise AgentUnavailable(
            f"the agent's reply cannot be used: {turn.detail}",
            hint=_HINTS["python" if spec.agent.in_python else "http"],
            body=turn.text or "",
            config=True,
        )
    if turn is not None and spec.agent.type == "http" and _is_page(turn.text or ""):
        warn(PAGE)
    if spec.agent.gateway and not first.trace:
        warn(f"{NOT_THROUGH_GATEWAY}: {GATEWAY_VARIABLES}")
    for program in first.missing_programs:
        warn(f"{NO_PROGRAM}: {program}. Install it, or put it into the world with setup")
    if could_leak(spec):
        second = await _asked(executor, trial)
        if not second.error and _said(first) != _said(second):
            warn(f"{STATEFUL} {SAMPLES}")
            executor.one_at_a_time()
    return first


async def _asked(executor: Executor, trial: Trial) -> Observation:
    async with aclosing(executor.execute((trial,))) as ended:
        async for _, seen in ended:
            return seen
    raise HarnessError("an executor gave nothing for a trial")


def could_leak(spec: Spec) -> bool:
    """Whether one trial's state could reach the next: one agent serves several, and nothing resets it."""
    agent = spec.agent
    running = agent.type == "http" and not agent.launched
    return not agent.has_reset and (running or agent.isolation in ("worker", "inline"))


def was_stateful(warnings: Iterable[str]) -> bool:
    """Whether an earlier preflight of the same run found that the agent seems to keep state."""
    return any(warning.startswith(STATEFUL) for warning in warnings)


def _is_page(text: str) -> bool:
    return text[:200].lstrip("\ufeff \t\r\n").lower().startswith(("<!doctype html", "<html"))


def _said(seen: Observation) -> tuple[str | None, ...]:
    return tuple(turn.text for turn in seen.turns)
