"""The HTTP agent: a running server that gets one request per turn.

`request` makes the requests, `client` sends them, `reply` finds the answer, `reset` restores the agent's initial state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.agents.conversation import converse, run_until_limit, time_left_s
from holdfast.agents.http.changed_client import ChangedClient
from holdfast.agents.http.client import HttpClient, HttpExchange
from holdfast.agents.http.reply import ReplyReader
from holdfast.agents.http.request import build_request_form
from holdfast.agents.http.reset import open_reset
from holdfast.agents.other_canaries import find_other_canaries
from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.model.observation import WHOLE, Answer, EndingKind, Turn
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.reading.json_values import compile_answer_path

if TYPE_CHECKING:
    from holdfast.agents.conversation import Dialogue
    from holdfast.agents.http.reply_headers import CookieJar
    from holdfast.agents.http.request import HttpRequest, RequestForm
    from holdfast.agents.http.reset import Reset
    from holdfast.http1.client import WasAccepted
    from holdfast.protocols.world import World

DescribeEnd: TypeAlias = Callable[[], Awaitable[tuple[EndingKind, str]]]
"""How an agent that Holdfast started ended, if it does not accept connections: the ending, and why."""

_RETRIED = "a reused connection closed before the reply; the request was sent again on a new connection"
_ATTACK_LOST = "the rewritten prompt did not reach the agent: the request template has no place for it"


class HttpAgent:
    """An agent behind a URL. `open` it inside a running loop, `close` it after use."""

    def __init__(
        self,
        form: RequestForm,
        wire: HttpClient | ChangedClient,
        reader: ReplyReader,
        reset: Reset | None,
        describe_end: DescribeEnd | None = None,
    ) -> None:
        self._form = form
        self._wire = wire
        self._reader = reader
        self._reset = reset
        self._describe_end = describe_end

    @classmethod
    async def open(
        cls, agent: AgentSpec, *, limit: int, root: Path = Path(), describe_end: DescribeEnd | None = None
    ) -> HttpAgent:
        """Return an agent for up to `limit` concurrent trials; `root` is the spec's folder, for reset_function.

        With `describe_end` the agent was ready before: if it cannot be reached now, that is its own failure. All
        references in `agent` are resolved. Raises AgentUnavailable (config) if no request can be made from it.
        """
        form = build_request_form(agent)
        path = agent.response_path
        reader = ReplyReader(compile_answer_path(path), path) if path else ReplyReader()
        reset = open_reset(agent, form.url, root, limit) if agent.has_reset else None
        # A reset has a connection of its own. A server that serves one at a time would not accept it while another one
        # is kept open.
        keep = not agent.has_reset if agent.keep_alive is None else agent.keep_alive
        wire = HttpClient(form.url, form.headers, timeout_ms=agent.timeout_ms, limit=limit, keep=keep)
        return cls(form, wire, reader, reset, describe_end)

    async def run(self, task: Task, world: World) -> Answer:
        if self._reset is not None:
            await self.reset(world)
        planes = world.planes
        if planes is None:
            return await self.ask(task, world)
        with planes.serve_trial(world.context):
            return await self.ask(task, world)

    async def ask(self, task: Task, world: World) -> Answer:
        """Ask turn after turn until one ends badly. Raises AgentUnavailable if the agent cannot be reached."""
        if task.variation is not UNSET and task.variation.request is not None:
            assert not isinstance(self._wire, ChangedClient)
            plain = replace(task, variation=UNSET)
            # The copy sends changed requests, and shares everything that must be closed.
            wire = ChangedClient(self._wire, self._form, task.variation.request, plain)
            return await HttpAgent(self._form, wire, self._reader, self._reset, self._describe_end).ask(plain, world)
        notes: list[str] = []
        cookies = None if task.max_turns == 1 else self._wire.make_cookie_jar()

        async def run_turn(text: str, dialogue: Dialogue | None) -> Turn:
            return await self._run_turn(text, world, notes, cookies, dialogue)

        turns = await converse(task, world.context, run_turn, notes, messages=self._form.takes_messages)
        return Answer(turns=turns, notes=tuple(dict.fromkeys(notes)))

    async def reset(self, world: World) -> None:
        """Restore the agent's initial state, as the spec says; raise HarnessError if that fails.

        It also raises if no time is left to ask the agent, which is not the agent's failure.
        """
        if self._reset is None or world.context.turns.is_restarted:
            return
        await self._reset()
        if time_left_s(world) <= 0:
            why = f"the trial's time ran out while the agent was being reset ({WHOLE})"
            raise HarnessError(why, code="no-time-left")

    async def close(self) -> None:
        try:
            await self._wire.close()
        finally:
            if self._reset is not None:
                await self._reset.close()

    async def _run_turn(
        self, text: str, world: World, notes: list[str], cookies: CookieJar | None, dialogue: Dialogue | None
    ) -> Turn:
        context = world.context
        prompt = context.injector.rewrite_turn(text)
        if prompt is not text and self._form.is_attack_dropped(prompt, text):
            notes.append(_ATTACK_LOST)
            context.injector.drop_turn_attacks()
        before = context.count_activity()
        request = self._form.fill(prompt, text, dialogue)
        exchange = await self._send_limited(request, cookies, world, lambda: context.count_activity() > before)
        if exchange.retried:
            notes.append(_RETRIED)
        if exchange.note:
            notes.append(exchange.note)
        answer = self._reader.read(exchange, notes)
        return Turn(
            asked=prompt,
            text=answer.text,
            latency_ms=exchange.latency_ms,
            ending=answer.ending,
            detail=answer.detail,
            status=exchange.status,
            cut=answer.cut,
            canaries=find_other_canaries(answer.returned, (prompt, text)),
            cause=answer.cause,
        )

    async def _send_limited(
        self, request: HttpRequest, cookies: CookieJar | None, world: World, accepted: WasAccepted
    ) -> HttpExchange:
        sending = self._send(request, cookies, time_left_s(world), accepted)
        if not world.context.sink.has_limits:
            return await sending
        began = world.context.sink.now()
        exchange = await run_until_limit(sending, world.context, ended=HttpExchange("timeout"))
        exchange.latency_ms = exchange.latency_ms or (world.context.sink.now() - began) * 1000
        return exchange

    async def _send(
        self, request: HttpRequest, cookies: CookieJar | None, limit_s: float, accepted: WasAccepted
    ) -> HttpExchange:
        """Send the request; if an agent that Holdfast started died, the exchange says so."""
        try:
            exchange = await self._wire.send(request, cookies, limit_s, accepted)
        except AgentUnavailable as gone:
            if self._describe_end is None or gone.config:
                raise
            return HttpExchange(*await self._describe_end())
        if exchange.ending in ("closed", "crashed") and self._describe_end is not None:
            ending, detail = await self._describe_end()
            if ending != "closed":
                exchange.ending, exchange.detail, exchange.note = ending, detail, ""
        return exchange
