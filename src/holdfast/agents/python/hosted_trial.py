"""One trial of a Python agent as its parent sees it: its pipes, its messages so far, and the answer."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from math import inf
from time import perf_counter
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.agents.conversation import run_until_limit
from holdfast.agents.python import host_protocol as protocol
from holdfast.errors import HarnessError
from holdfast.model.codec import encode
from holdfast.model.observation import Answer, FaultMet, Turn
from holdfast.model.task import Task
from holdfast.model.trace import EVENTS_KEPT, TraceEvent
from holdfast.processes.leftovers import GRACE_S, kill_group
from holdfast.processes.pipes import Outlet, Tail, drain, read_now
from holdfast.processes.program import describe_end, split_status
from holdfast.protocols.trial import TrialContext

MESSAGE_LIMIT = 80_000_000
"""Maximum size of a message, in bytes: a truncated answer fits, whatever its characters."""
PARTIAL_LIMIT = 1_000_000
"""Maximum length of an unfinished answer, in characters."""

_messages: msgspec.json.Decoder[protocol.Message] = msgspec.json.Decoder(protocol.Message)


class HostedTrial:
    """A trial in progress, with its pipes. Close those after use."""

    def __init__(self, context: TrialContext, task: Task) -> None:
        self.pid = 0
        self.prompts = [context.injector.rewrite_turn(context.turns.choose_first(task))]
        self.turns_begun = 0
        """Number of turns whose time has started."""
        self.turns: list[Turn] = []
        self.notes: list[str] = []
        self.done: protocol.TurnsDone | None = None
        self.error = ""
        self._error_code = ""
        self.late = False
        self.limit_ms = inf
        """The time limit of the turn, once it has run out: an answer that took longer is late."""
        self.exited = False
        self.status: int | None = None
        self.out_of_memory = ""
        self.printed = Tail()
        self.pipes = TrialPipes(self.printed, self._receive)
        self._frames = protocol.MessageFrames(self._handle_message)
        self._context = context
        self._calls: dict[tuple[int, int], TraceEvent] = {}
        """Calls of the agent's functions in progress."""
        self._task = task
        self._settling: set[asyncio.Task[None]] = set()
        self._since = perf_counter()
        self._partial: list[str] = []
        """Parts of an answer, which count if no more of it arrives."""
        self._partial_size = 0
        self._changed = asyncio.Event()
        """Set by each message, and when the process ends."""

    async def wait(self, until: Callable[[], bool], limit_s: float) -> bool:
        """Wait until the condition is true or the process has ended; return False if the time ran out."""
        try:
            async with asyncio.timeout(limit_s):
                while not (self.exited or until()):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def finish(self, status: int | None, out_of_memory: str = "") -> None:
        """Record the end of the process: its waitpid status, or the system's report that it ran out of memory."""
        if not self.exited:
            self.exited, self.status, self.out_of_memory = True, status, out_of_memory
            self._changed.set()

    def fail(self, why: str, code: str) -> None:
        """Record a harness error; the first one counts."""
        if not self.error:
            self.error, self._error_code = why, code

    @property
    def all_turns_ended(self) -> bool:
        """Whether the last turn that was sent has ended, or the trial has."""
        return self.done is not None or len(self.turns) >= len(self.prompts)

    async def begin(self) -> None:
        """Start to listen to the process, and send it the trial."""
        began = perf_counter() - self._context.sink.now()
        turns = self._context.turns
        request = protocol.TrialRequest(
            self._context.trial,
            self.prompts[0],
            self._task.max_turns,
            began,
            turns.earlier,
            restarted=turns.is_restarted,
        )
        self.pipes.listen()
        await self.pipes.send(request)

    async def run_turns(self, limit_s: Callable[[], float]) -> float:
        """Ask turn after turn until one takes longer than `limit_s`; return the time limit of the last turn."""
        turn_s = limit_s()
        while not self.error:
            ending = self.wait(lambda: self.all_turns_ended, turn_s)
            if not await run_until_limit(ending, self._context, ended=False) and not await self._is_arriving(turn_s):
                self.late = True
                break
            if not await self._send_next_turn():
                break
            turn_s = limit_s()
        return turn_s

    async def _is_arriving(self, limit_s: float) -> bool:
        """Return whether an answer that was given in time is still arriving: Holdfast may have been busy."""
        # The time has run out on Holdfast's clock. A message that began to arrive is read to its end: the agent's own
        # clock, which its last message contains, decides whether the answer was in time.
        self.limit_ms = limit_s * 1000
        self.pipes.drain()
        if not self.all_turns_ended and len(self._frames):
            await self.wait(lambda: self.all_turns_ended or self.late, GRACE_S)
        return self.all_turns_ended and not self.late

    async def _send_next_turn(self) -> bool:
        """Send the next turn and return True; if there is none, tell a waiting process so and return False."""
        if len(self.prompts) == self._task.max_turns or self.exited or self.done or self.turns[-1].ending != "answered":
            return False
        text = await self._context.turns.choose_next(self._task, self.turns)
        if text is not None:
            text = self._context.injector.rewrite_turn(text)
            self.prompts.append(text)
        await self.pipes.send(text)
        return text is not None

    def _receive(self, data: bytes) -> bool:
        """Take what the process has sent; return False if nothing more may be read."""
        self._frames.feed(data)
        # An unfinished message of this size does not come from Holdfast's code in the agent's process: the agent writes
        # to the line itself, and must not fill Holdfast's memory.
        if len(self._frames) <= MESSAGE_LIMIT:
            return True
        self.notes.append("the agent's process sent too much data and was stopped")
        kill_group(self.pid, signal.SIGKILL)
        return False

    def _handle_message(self, data: bytes) -> None:
        try:
            message = _messages.decode(data)
        except msgspec.DecodeError as broken:
            self.fail(f"the agent's process sent a message that cannot be read: {broken}", "agent-lost")
            return
        if isinstance(message, protocol.Piece):
            self._add_piece(message.text)
        elif isinstance(message, protocol.TurnEnded):
            self._end_turn(message)
        elif isinstance(message, protocol.Fault):
            injector = self._context.injector
            (injector.amend_fault if message.amends else injector.add_fault)(self._mark_late_fault(message.met))
        elif isinstance(message, protocol.RecordingUsed):
            self._context.injector.add_use(message.use)
        elif isinstance(message, protocol.FunctionCalls):
            self._add_calls(message.calls)
        elif isinstance(message, protocol.TurnBegun):
            self.turns_begun += 1
            self._since = perf_counter()
        elif isinstance(message, protocol.Note):
            self._context.sink.note(message.text)
        elif isinstance(message, protocol.HarnessFailure):
            self.fail(message.message, message.code)
        else:
            self.done = message
        self._changed.set()

    def _add_calls(self, calls: tuple[protocol.FunctionCall, ...]) -> None:
        """Add a call to the trace when it has ended."""
        for call in calls:
            key = (call.pid, call.number)
            if call.event.phase == "unfinished":
                if len(self._calls) < EVENTS_KEPT:  # the agent may send anything
                    self._calls[key] = call.event
            else:
                self._calls.pop(key, None)
                self._context.sink.add(call.event)
                if call.event.write and self._context.trial.scenario.waits_for_writes:
                    # The agent waits until the faults have acted that wait for this write.
                    task = asyncio.create_task(self._continue_after_write())
                    self._settling.add(task)
                    task.add_done_callback(self._settling.discard)

    async def _continue_after_write(self) -> None:
        if self._context.sink.watcher is not None:
            await self._context.sink.watcher.finish_due()
        await self.pipes.send(None)

    def _mark_late_fault(self, met: FaultMet) -> FaultMet:
        """Mark a fault that acted after the last answer as not met.

        A later one, in a leftover thread or task, did not affect it.
        """
        if self.done is None and not self.late:
            return met
        return replace(met, effect="no_effect", note="after the answer")

    def _end_turn(self, message: protocol.TurnEnded) -> None:
        # The agent's own clock decides whether the answer was in time: Holdfast may have read it late.
        self.late = self.late or message.turn.latency_ms > self.limit_ms
        if self.late:
            self.notes.append("an answer arrived after the timeout and was dropped")
            return
        self.turns.append(message.turn)
        self.notes.extend(message.notes)
        self._partial.clear()
        self._partial_size = 0

    def _add_piece(self, text: str) -> None:
        if not self.late:
            if self._partial_size < PARTIAL_LIMIT:
                self._partial.append(text)
            self._partial_size += len(text)

    def build_answer(self, timeout_s: float) -> Answer:
        """Return the result of the trial; raise HarnessError, with the answers so far, for a harness error."""
        while self._calls:  # its process ended, and they with it
            event = self._calls.pop(next(iter(self._calls)))
            self._context.sink.add(replace(event, duration_ms=(self._context.sink.now() - event.ts) * 1000))
        if not self.error and len(self.turns) < len(self.prompts):
            self.turns.append(self._end_open_turn(timeout_s))
        self.notes.extend(self.printed.notes)
        answer = Answer(
            turns=tuple(self.turns),
            output=self.printed.text,
            notes=tuple(self.notes),
            calls=self.done.calls if self.done else {},
            concurrent=self.done.concurrent if self.done else False,
            unmatched=self.done.unmatched if self.done else {},
        )
        if self.error:
            raise HarnessError(self.error, code=self._error_code, answer=answer)
        return answer

    def _end_open_turn(self, timeout_s: float) -> Turn:
        """Return the turn that never ended, with the parts of its answer."""
        prompt = self.prompts[len(self.turns)]
        text = "".join(self._partial)[:PARTIAL_LIMIT] or None
        cut = self._partial_size > PARTIAL_LIMIT
        if cut:
            self.notes.append(f"its partial answer was cut to {PARTIAL_LIMIT} characters")
        if self.late:
            return Turn(prompt, text, timeout_s * 1000, "timeout", f"no answer within {timeout_s * 1000:g} ms", cut=cut)
        took_ms = (perf_counter() - self._since) * 1000
        if self.out_of_memory:
            return Turn(prompt, text, took_ms, "out_of_memory", f"it {self.out_of_memory}", cut=cut)
        code, _ = split_status(self.status)
        how = "closed its connection to Holdfast" if code == protocol.CONNECTION_LOST else describe_end(self.status)
        return Turn(prompt, text, took_ms, "crashed", f"its process {how} before it answered", cut=cut)


class TrialPipes:
    """Holdfast's ends of the pipes of a trial in another process: its line and its output."""

    def __init__(self, printed: Tail, on_data: Callable[[bytes], bool]) -> None:
        """`on_data` takes what arrives on the line, and returns False if nothing more may be read."""
        self._loop = asyncio.get_running_loop()
        self._on_data = on_data
        self._output = Outlet(printed)
        try:
            self._line, self._their_line = socket.socketpair()
        except OSError:
            self._output.close()
            raise
        self._line.setblocking(False)

    @property
    def child_ends(self) -> tuple[int, int]:
        """The ends to hand over: of the line, and of the output."""
        return self._their_line.fileno(), self._output.child_end

    def close_child_ends(self) -> None:
        """Close the other ends after they were handed over. A caller still waits for the host's first message."""
        self._their_line.close()
        self._output.close_child_end()

    def listen(self) -> None:
        """Close the other ends after they were handed over, and start reading the trial's messages."""
        self.close_child_ends()
        self._loop.add_reader(self._line.fileno(), self._read_line)

    async def send(self, message: Any) -> None:
        with suppress(OSError):  # it died: its exit status will show
            await self._loop.sock_sendall(self._line, protocol.add_length(encode(message)))

    async def receive(self) -> bytes:
        """Return the next bytes of the connection before a reader is registered; b"" at its end."""
        try:
            return await self._loop.sock_recv(self._line, 1 << 16)
        except OSError:
            return b""

    def drain(self) -> None:
        """Read what arrived before the end and was not read yet."""
        drain(self._line.fileno(), self._on_data)
        self._output.drain()

    def close(self) -> None:
        self._their_line.close()
        self._loop.remove_reader(self._line.fileno())
        self._line.close()
        self._output.close()

    def _read_line(self) -> None:
        data = read_now(self._line.fileno())
        if data is not None and not (data and self._on_data(data)):
            self._loop.remove_reader(self._line.fileno())
