"""`agent.simulate: answer`: tool and model faults act on the answer of an agent we cannot reach into.

It is a poor second to breaking the agent's own calls, so it is asked for by name and marked
wherever it shows.
"""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.agents.python.answers import text_of
from holdfast.model.observation import Answer, Turn
from holdfast.planes.injection.weather import ANSWER, Weather
from holdfast.protocols.fault import Call, Failed, Reply, TimedOut


async def damage(answer: Answer, weather: Weather, timeout_ms: float) -> Answer:
    """The answer as it would be had its text been a tool's or a model's reply."""
    turns = [await _damaged(turn, n, weather, timeout_ms) for n, turn in enumerate(answer.turns, start=1)]
    return replace(answer, turns=tuple(turns), notes=(*answer.notes, "simulated: the faults acted on the answer"))


async def _damaged(turn: Turn, n: int, weather: Weather, timeout_ms: float) -> Turn:
    text = turn.text
    if text is None:
        return turn
    late_ms = turn.latency_ms

    async def forward(_: Call) -> Reply:
        return Reply(text)

    async def wait(ms: float) -> None:
        """A delay is added to the time the agent took; nobody has to sit through it."""
        nonlocal late_ms
        late_ms += ms

    try:
        for plane in ("llm", "tool"):
            text = text_of((await weather.through(Call(plane, ANSWER, {}, n), forward, wait)).value)
    except TimedOut as failure:
        return replace(turn, text=None, latency_ms=late_ms, ending="timeout", detail=f"simulated: {failure}")
    except Failed as failure:
        status, detail = failure.status, f"simulated: {failure}"
        return replace(turn, text=None, latency_ms=late_ms, ending="http_error", status=status, detail=detail)
    if late_ms > max(timeout_ms, turn.latency_ms):
        detail = f"simulated: no answer within {timeout_ms:g} ms"
        return replace(turn, text=None, latency_ms=timeout_ms, ending="timeout", detail=detail)
    return replace(turn, text=text, latency_ms=late_ms, ending="answered" if text is not None else "no_answer")
