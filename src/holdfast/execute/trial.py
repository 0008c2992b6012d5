"""run_trial: one trial on an open Site. The one effectful step of the flow."""

from __future__ import annotations

import asyncio
from asyncio import current_task
from typing import Literal

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.agents.python.answers import to_text
from holdfast.errors import AgentUnavailable, HarnessError, format_error_place
from holdfast.execute.context import LiveContext, OnFault
from holdfast.execute.plane_needs import check_tools_offered
from holdfast.execute.resolved_spec import add_position
from holdfast.execute.site import Site
from holdfast.execute.trace_sink import OnCall
from holdfast.model.codec import encode_canonical, make_encodable
from holdfast.model.observation import ENDED_BY_US, Answer, Observation, Turn
from holdfast.model.shorten import shorten
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import CONTROL, Trial
from holdfast.planes.describe import format_exception
from holdfast.planes.injection.active_injection import ANSWER
from holdfast.planes.injection.weather import Weather
from holdfast.protocols.fault import Call, Failed, Reply, TimedOut
from holdfast.reading.words import format_plural


async def damage_answer(answer: Answer, weather: Weather, timeout_ms: float) -> Answer:
    """Apply the faults to the text of the answer, as if it were a tool's or a model's reply."""
    turns = [await _damage_turn(turn, n, weather, timeout_ms) for n, turn in enumerate(answer.turns, start=1)]
    return replace(answer, turns=tuple(turns), notes=(*answer.notes, "simulated: the faults acted on the answer"))


async def _damage_turn(turn: Turn, n: int, weather: Weather, timeout_ms: float) -> Turn:
    text = turn.text
    if text is None:
        return turn
    late_ms = turn.latency_ms

    async def forward(_: Call) -> Reply:
        return Reply(text)

    async def wait(ms: float) -> None:
        """Add a delay to the agent's time instead of waiting for it."""
        nonlocal late_ms
        late_ms += ms

    try:
        for plane in ("llm", "tool"):
            text = to_text((await weather.inject(Call(plane, ANSWER, {}, n), forward, wait)).value)
    except TimedOut as failure:
        return replace(turn, text=None, latency_ms=late_ms, ending="timeout", detail=f"simulated: {failure}")
    except Failed as failure:
        status, detail = failure.status, f"simulated: {failure}"
        return replace(turn, text=None, latency_ms=late_ms, ending="http_error", status=status, detail=detail)
    if late_ms > max(timeout_ms, turn.latency_ms):
        detail = f"simulated: no answer within {timeout_ms:g} ms"
        return replace(turn, text=None, latency_ms=timeout_ms, ending="timeout", detail=detail)
    return replace(turn, text=text, latency_ms=late_ms, ending="answered" if text is not None else "no_answer")


_NOTHING = Answer(turns=())
RESENDS: tuple[Literal["attack", "plain"], ...] = ("plain", "attack", "attack", "plain", "plain")
"""What is sent after a mutation of the request, at most.

Together with the first attack this is A P A A P P. An agent that goes by the number of a request alone (a period, a
limit or a warm-up, not this very order) cannot treat all As in one way and all Ps in another, even if it counts an
attack as several requests. The last two As are one attack
apart and the A before them is an attack and a P away, so no period hits all As. The last two Ps are neighbours, so no
period hits all Ps. A lockout treats the last P as an A, and a warm-up treats the last A as the P before it.
"""


async def run_trial(
    site: Site, trial: Trial, on_fault: OnFault | None = None, on_call: OnCall | None = None
) -> Observation:
    """Run the agent once. After a mutation of the request, send the attack and the plain request again.

    Harness errors are retried, then reported; the agent's failures are the result.
    """
    first = await _observe_trial(site, trial, on_fault, on_call)
    if not trial.task.changes_request or first.error or not (_is_answer(first) or _is_refusal(first)):
        return first
    return await _send_again(site, trial, first)


async def _send_again(site: Site, trial: Trial, first: Observation) -> Observation:
    """Send later requests until a reply settles the matter; return the observation with their replies."""
    # Each request has its own world and weather: its effects are not the attack's, and no fault acts on it.
    plain = replace(trial, scenario=CONTROL, task=trial.task.control)
    attacks, plains = [first], list[Observation]()
    cost: list[TraceEvent] = []
    error = code = ""
    for step in RESENDS:
        if step == "plain" and plains and not _is_answer(plains[-1]):
            continue  # the agent refuses everything; it may still obey an attack that it does not refuse
        again = await _observe_trial(site, plain if step == "plain" else trial)
        cost += (event for event in again.trace if event.cost is not None)
        error, code = again.error, again.error_code
        if step == "plain":
            plains.append(again)
        elif not error:
            attacks.append(again)
        if error or not (_is_answer(again) or _is_refusal(again)):
            break
        if step == "attack" and _is_alike(again, plains[-1]) != _is_alike(first, plains[-1]):
            break  # the agent does not treat every attack alike
        if step == "plain" and _is_answer(first) and (_is_alike(first, again) or not _is_answer(again)):
            break  # the attack gets the answer of the plain request, or the agent now refuses everything
    after = Observation(
        trial.id,
        tuple(turn for observation in plains for turn in observation.turns),
        error=error,
        error_code=code,
        trace=tuple(cost),
    )
    # A reply that differs from the first is shown: the agent may have obeyed there.
    shown_reply = next((observation for observation in attacks if not _is_alike(first, observation)), first)
    return replace(
        shown_reply,
        asked_again=after,
        repeats=tuple(observation for observation in attacks if observation is not shown_reply),
    )


def _is_answer(observation: Observation) -> bool:
    return bool(observation.turns) and observation.ending == "answered"


def _is_refusal(observation: Observation) -> bool:
    """Return whether the judge may take it for a refusal: a 4xx other than 429, or no reply if none is required."""
    last = observation.turns[-1] if observation.turns else None
    return (
        last is not None
        and last.ending in ("http_error", "closed", "no_answer")
        and last.status != 429
        and (last.status or 0) < 500
    )


def _is_alike(one: Observation, other: Observation) -> bool:
    """Return whether both are refusals, or both are answers with the same meaning."""
    if _is_answer(one) != _is_answer(other):
        return False
    if not _is_answer(one):
        return True
    from holdfast.checks.same_answer import has_same_answers  # few trials need it

    return has_same_answers(one.turns, other.turns)


async def _observe_trial(
    site: Site, trial: Trial, on_fault: OnFault | None = None, on_call: OnCall | None = None
) -> Observation:
    attempt = 0
    while True:
        attempt += 1
        # Each attempt has its own context, so that nothing of a failed one is judged. Only an attempt in which the
        # agent did nothing wrong itself is repeated: its failures are results, and repeating would hide them.
        context = LiveContext(trial, on_fault, on_call, site.limits)
        try:
            answer = await _run_agent(site, trial, context)
        except AgentUnavailable as broken:
            if broken.config and trial.kind == "control":
                raise add_position(site.spec, broken) from broken  # the run ends before its trials begin
            why = f"{broken}. {broken.hint}" if broken.hint else str(broken)
            answer, error, code = _NOTHING, make_encodable(why), broken.code
        except HarnessError as broken:
            answer, error, code = broken.answer or _NOTHING, make_encodable(str(broken)), broken.code
        except Exception as broken:  # a bug in Holdfast or in a plug-in ends one trial, not the run
            answer, error, code = _NOTHING, format_exception(broken) + format_error_place(broken), "bug"
        else:
            error = code = ""
        if (task := current_task()) is not None and task.cancelling():
            raise asyncio.CancelledError  # Holdfast itself cancelled the trial: its result is nobody's fault
        if site.awaits_tools and not error and trial.scenario.calm and _is_answered(answer):
            check_tools_offered(site.spec, context.sink.events(), context.count_calls(answer))
            site.awaits_tools = False
        context.sink.closed = True
        if not error or attempt > site.spec.retries or not _is_answered(answer):
            simulated = site.simulate and trial.scenario.on_calls
            return context.observe(answer, error, code, attempts=attempt, simulated=simulated)
        await asyncio.sleep(0.05 * attempt)


def _is_answered(answer: Answer) -> bool:
    return all(turn.ending == "answered" for turn in answer.turns)


def _record_calls(context: LiveContext, answer: Answer) -> None:
    """Record how far an agent had come that Holdfast stopped."""
    if not answer.turns or answer.turns[-1].ending not in ENDED_BY_US:
        return
    from holdfast.checks.trace.calls import find_calls, find_outermost_calls, split_requested  # few trials end this way

    made, _ = split_requested(find_outermost_calls(find_calls(context.sink.events())))
    if made:
        last = shorten(f"{made[-1].plane} {made[-1].tool}")
        context.calls_made = f"it was stopped after {format_plural(len(made), 'call')}; the last was {last}"
        context.sink.note(context.calls_made)


async def _run_agent(site: Site, trial: Trial, context: LiveContext) -> Answer:
    own_site, task = site, trial.task
    if site.has_params:
        task = site.fill_task(trial)
        if site.by_params:  # params that no site was opened for are a harness error, never another site's answer
            own_site = site.by_params[encode_canonical(trial.params)]
    if site.users is not None and task.user is not UNSET:
        context.turns.user = site.users.join(task.user)
    answer = await own_site.worlds.run(own_site.agent, task, context)
    sink = context.sink
    if sink.limit:  # the agent exceeded a limit in its last turn, whatever its result was
        *before, last = answer.turns
        took_ms = min(last.latency_ms, sink.now() * 1000)
        answer = replace(answer, turns=(*before, replace(last, ending="limit", detail=sink.limit, latency_ms=took_ms)))
    if sink.trace:
        _record_calls(context, answer)
    for why in sink.find_unanswered(answer):
        sink.add_error(why, "model-unavailable")
    if sink.errors:
        raise HarnessError("; ".join(sink.errors), code=sink.error_code, answer=answer)
    if site.simulate and trial.scenario.on_calls:
        return await damage_answer(answer, context.injector.weather, site.spec.agent.timeout_ms)
    return answer
