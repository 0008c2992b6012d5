"""A conversation with an agent: its input turn after turn, and how long a turn may take."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from msgspec import UNSET, UnsetType

from holdfast.model.observation import EndingCause, EndingKind, Turn
from holdfast.model.task import DialogueMessage, Task
from holdfast.reading.json_values import MISSING, write_json

if TYPE_CHECKING:
    from holdfast.protocols.trial import TrialContext
    from holdfast.protocols.world import World

AgentMessage: TypeAlias = dict[str, str]
"""A message as agents expect it: its `role` and `content`."""

CONTEXT_AS_TEXT = (
    "the earlier turns were added to the first prompt as text, because this agent does not accept messages"
)
SYSTEM_LEFT_OUT = "the system message of the conversation was left out: this agent takes text, and has its own"

_SPEAKERS = {"user": "User", "assistant": "Assistant", "tool": "Tool"}


class Dialogue:
    """One conversation with an agent that takes messages or that has a context."""

    def __init__(self, before: tuple[DialogueMessage, ...] | UnsetType, *, messages: bool, once: bool = False) -> None:
        """`before` are the earlier turns.

        `messages` means that the agent takes a list of messages, `once` that it gets each message only once.
        """
        self._once = once
        self._before = () if before is UNSET else before
        self._messages = messages
        self._turns_so_far: list[AgentMessage] = [
            {"role": message.role, "content": message.content} for message in self._before
        ]
        self._begun = False

    @property
    def note(self) -> str:
        """A note about how the context was passed; empty if there is none."""
        if self._messages or not self._before:
            return ""
        return "; ".join(
            [CONTEXT_AS_TEXT] * bool(self._earlier_turns)
            + [SYSTEM_LEFT_OUT] * (len(self._earlier_turns) < len(self._before))
        )

    @property
    def _earlier_turns(self) -> list[DialogueMessage]:
        """The earlier turns, without the system message, which belongs to the agent and not to the user."""
        return [message for message in self._before if message.role != "system"]

    def build_messages(self, question: str) -> list[AgentMessage]:
        """Return all messages up to this question, in a new list that the agent may change."""
        return [*map(dict, self._turns_so_far), {"role": "user", "content": question}]

    def build_text(self, question: str) -> str:
        """Return the question as text; before the first one it adds the earlier turns."""
        if self._begun or not self._earlier_turns:
            return question
        lines = [f"{_SPEAKERS[message.role]}: {message.content}" for message in self._earlier_turns]
        return "\n".join(["The conversation so far:", *lines, "", f"{_SPEAKERS['user']}: {question}"])

    def build_input(self, question: str) -> str | list[AgentMessage]:
        """Return the agent's input for this question."""
        return self.build_messages(question) if self._messages else self.build_text(question)

    def add_turn(self, turn: Turn) -> None:
        """Add a finished turn to the conversation."""
        self._begun = True
        if self._once:
            self._turns_so_far = []
            return
        question: AgentMessage = {"role": "user", "content": turn.asked}
        self._turns_so_far += [question, {"role": "assistant", "content": turn.text or ""}]


def make_dialogue(
    before: tuple[DialogueMessage, ...] | UnsetType, earlier: Sequence[Turn] = (), *, messages: bool, once: bool = False
) -> Dialogue | None:
    """Return the dialogue; None for an agent that gets only the questions, as most do.

    `earlier` are turns of this trial, which the agent answered before it was killed and started again.
    """
    if not messages and before is UNSET:
        return None
    dialogue = Dialogue(before, messages=messages, once=once)
    for turn in earlier:
        dialogue.add_turn(turn)
    return dialogue


async def converse(
    task: Task,
    context: TrialContext,
    run_turn: Callable[[str, Dialogue | None], Awaitable[Turn]],
    notes: list[str],
    *,
    messages: bool,
    once: bool = False,
) -> tuple[Turn, ...]:
    """Ask turn after turn until one ends badly; see `Dialogue` for `messages` and `once`."""
    dialogue = make_dialogue(task.context, context.turns.earlier, messages=messages, once=once)
    if dialogue is not None and dialogue.note:
        notes.append(dialogue.note)
    turns: list[Turn] = []
    text: str | None = context.turns.choose_first(task)
    while text is not None:
        turns.append(await run_turn(text, dialogue))
        if turns[-1].ending != "answered" or len(turns) == task.max_turns:
            break
        if dialogue is not None:
            dialogue.add_turn(turns[-1])
        text = await context.turns.choose_next(task, turns)
    return tuple(turns)


T = TypeVar("T")


RESET_S = 10.0
"""Maximum time for a reset in seconds; after that the trial is an error."""


def time_left_s(world: World) -> float:
    """Return the rest of the trial's time in seconds, at least 0."""
    return max(0.0, world.time_left_s())


def compute_turn_limit_ms(timeout_ms: float, world: World) -> float:
    """Return the time limit of a turn that starts now."""
    return min(timeout_ms, time_left_s(world) * 1000)


async def run_until_limit(work: Coroutine[Any, Any, T], context: TrialContext, ended: T) -> T:
    """Return the result of the work, or `ended` as soon as the agent exceeds one of its limits."""
    if not context.sink.has_limits:
        return await work
    working = asyncio.ensure_future(work)
    passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    context.sink.on_limit = lambda: None if passed.done() else passed.set_result(None)
    try:
        if not context.sink.limit:
            await asyncio.wait((working, passed), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else ended
    finally:
        context.sink.on_limit = None
        if not working.done():
            working.cancel()
            await asyncio.wait((working,))


CONTENT_KEYS = ("content", "text", "output", "answer", "message")
"""The keys of a dict or object that may hold the text of an answer, in this order."""


ANSWER_KEYS: Final = (
    "output", "response", "result", "data", "content", "text", "message", "answer", "reply", "queries", "query",
    "results",
)  # fmt: skip
"""The keys of a reply that may hold the answer, in this order."""


class FoundAnswer(NamedTuple):
    """The answer in what an agent printed or sent, and the ending of its turn if nothing else went wrong."""

    text: str | None
    ending: EndingKind = "answered"
    detail: str = ""
    cut: bool = False
    cause: EndingCause = ""
    returned: tuple[Any, ...] = ()
    """The JSON objects in which the answer is a field: of a stream, each event."""


def find_answer(value: Any) -> Any:
    """Return the first common key's value that is not null; a value that is not an object is the answer itself."""
    if not isinstance(value, dict):
        return value
    answer = MISSING
    for key in ANSWER_KEYS:
        if key in value:
            answer = value[key]
            if answer is not None:
                return answer
    return answer


def to_text(value: Any, *, unwrap: bool = True) -> str:
    """Return a value as text: itself, else its JSON; `unwrap` replaces an object by its content.

    A `response_path` selects the answer itself, so nothing is searched inside it.
    """
    while unwrap and isinstance(value, dict):
        key = next((key for key in CONTENT_KEYS if value.get(key) is not None), None)
        if key is None:
            break
        value = value[key]
    return value if isinstance(value, str) else write_json(value)
