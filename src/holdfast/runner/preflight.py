"""The first question, asked without faults: does the agent answer, and does it seem to keep state?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.model.codes import STATEFUL
from holdfast.model.observation import Observation, list_unread_models
from holdfast.model.spec import Spec
from holdfast.model.trial import Trial
from holdfast.report.wording import GATEWAY_VARIABLES, NOT_THROUGH_GATEWAY

if TYPE_CHECKING:
    from holdfast.protocols.executor import Executor

NO_RESET = (
    "No reset_endpoint configured. Contract matrix cells may share state. Results may be contaminated. "
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
NO_PROGRAM = "a rule runs a program that the sandbox does not have, and proves nothing unless the agent installs it"
NO_BASH = "a rule is written for bash, but runs with sh and proves nothing"
NO_MODEL = (
    "the agent called no model through the gateway: its client must read OPENAI_BASE_URL or its provider's variable; "
    "an address in its code, such as http://localhost:11434, bypasses the gateway"
)
_REQUEST = "agent.request_template: the agent expects other fields in the request (the default is {input: the prompt})"
_REFUSALS = {
    400: _REQUEST,
    401: "agent.headers: the agent expects credentials",
    403: "agent.headers: the agent expects credentials",
    404: "agent.endpoint: the agent has no such path",
    405: "agent.endpoint and agent.method: the path does not accept this method",
    415: _REQUEST,
    422: _REQUEST,
}
"""Status codes by which a server says that it is called in a wrong way, and the keys to look at."""
_DIED = ("crashed", "raised", "out_of_memory")
"""Endings before which an agent may not have called its model; the cause of the ending is reported instead."""
SAMPLES = "(an agent that samples also looks like this)"


async def run_preflight(executor: Executor, spec: Spec, trial: Trial, warn: Callable[[str, str], None]) -> Observation:
    """Ask once, or twice if state could leak between trials; raise AgentUnavailable if a run would be pointless."""
    first = await _ask(executor, trial)
    if first.error:
        raise AgentUnavailable(first.error, code=first.error_code)
    turn = first.turns[-1] if first.turns else None
    if turn is not None and turn.ending == "unreadable" and turn.cause != "not-text":
        raise AgentUnavailable(
            f"the agent's reply cannot be used: {turn.detail}",
            code="answer-unreadable",
            hint=_HINTS["python" if spec.agent.is_python else "http"],
            body=turn.text or "",
            config=True,
        )
    start = ((turn and turn.text) or "")[:200].lstrip("\ufeff \t\r\n").lower()
    if spec.agent.type == "http" and start.startswith(("<!doctype html", "<html")):
        warn("agent-page", PAGE)
    if turn is not None and turn.ending == "http_error" and (wrong := _REFUSALS.get(turn.status or 0)):
        warn("request-refused", f"the agent refused the first request, without any fault: {turn.detail}. Check {wrong}")
    _warn_about_models(first, spec, warn)
    for program in first.missing_programs:
        warn("program-missing", _explain_missing(program))
    # The same question twice, without faults: an agent that answers differently either remembers the first question or
    # samples. Which of the two is unknown, so its trials run one at a time.
    if can_leak(spec):
        second = await _ask(executor, trial)
        if not second.error and _list_answers(first) != _list_answers(second):
            warn(STATEFUL, f"{NO_RESET} {SAMPLES}")
            executor.use_one_slot()
    return first


def _warn_about_models(first: Observation, spec: Spec, warn: Callable[[str, str], None]) -> None:
    """Warn if the agent's model calls did not go through the gateway, or cannot be read there."""
    has_died = bool(first.turns) and first.turns[-1].ending in _DIED
    unread = list_unread_models(first.calls)
    for place in unread:
        why = "which Holdfast does not read: no fault acts on its replies, and its calls are not in the trace"
        warn("model-unread", f"{place}, {why}")
    if spec.agent.gateway and not first.trace and not has_died:
        warn("gateway-unused", f"{NOT_THROUGH_GATEWAY}: {GATEWAY_VARIABLES}")
    elif spec.agent.web_in_reach and not has_died and not unread:
        is_faulty = any(injection.plane == "llm" for scenario in spec.scenarios for injection in scenario.injections)
        is_expected = is_faulty or "*" in spec.models  # a script or server is set up to answer its calls
        if is_expected and not any(name.startswith("llm:") for name in first.calls):
            warn("model-not-asked", NO_MODEL)


def _explain_missing(program: str) -> str:
    from holdfast.reading.bash_syntax import explain_bash_only  # most runs have no such program

    bash_only = explain_bash_only(program)
    missing = f"{NO_PROGRAM}: {program}. Install it on this machine, or in the sandbox with setup"
    return f"{NO_BASH}: {bash_only}" if bash_only else missing


async def _ask(executor: Executor, trial: Trial) -> Observation:
    async with aclosing(executor.execute((trial,))) as ended:
        async for _, observation in ended:
            return observation
    raise HarnessError("an executor returned no observation for a trial", code="bug")


def can_leak(spec: Spec) -> bool:
    """Return whether one trial's state could reach the next: one agent serves several trials without a reset."""
    agent = spec.agent
    running = agent.type == "http" and not agent.launched
    return not agent.has_reset and (running or agent.isolation in ("worker", "inline"))


def _list_answers(observation: Observation) -> list[str | None]:
    return [turn.text for turn in observation.turns]
