"""What is asked: `task:` and the entries of `golden_prompts:`."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import Struct

from holdfast.reading.fields import ValueForm, about
from holdfast.reading.node import Node
from holdfast.reading.reader import BAD, Reader
from holdfast.reading.words import found

_TEXT = Annotated[str, about("", min_length=1)]


class UserSection(Struct, frozen=True, kw_only=True):
    """A simulated user, who carries a conversation on when the written turns are over."""

    at: Node
    script: Annotated[str | None, about("A file beside the spec: what the user says.", min_length=1)] = None
    model: Annotated[str | None, about("The model that plays the user, found in models:.", min_length=1)] = None
    goal: Annotated[str | None, about("What a model is to want of the agent.", min_length=1)] = None
    stop: Annotated[
        str | None, about("A regular expression: what an answer says when the conversation is over.", min_length=1)
    ] = None
    max_turns: Annotated[
        int, about("How often the agent is asked at most, the written turns included.", ge=2, le=100)
    ] = 5


class TaskSection(Struct, frozen=True, kw_only=True):
    """What is asked: one question, several, or a conversation with a simulated user."""

    at: Node
    prompt: Annotated[str | None, about("The question; the first one where turns follow.", min_length=1)] = None
    turns: Annotated[tuple[_TEXT, ...], about("Further questions, one after the other.")] = ()
    user: Annotated[UserSection | None, about("Who asks further when these are over.")] = None

    @property
    def asked(self) -> tuple[str, ...]:
        """All written questions, in order."""
        return (*((self.prompt,) if self.prompt else ()), *self.turns)


def _read(reader: Reader, node: Node, path: str) -> Any:
    if node.kind == "map":
        return reader.section(TaskSection, node, path)
    if node.kind == "list":
        hint = "several turns of one conversation are {turns: [...]}"
        return reader.error(node, path, f"expected text or a map, found {found(node)}", hint=hint, code="wrong-type")
    text = reader.read(_TEXT, node, path)
    return BAD if text is BAD else TaskSection(at=node, prompt=text)


GoldenPrompt: TypeAlias = Annotated[
    TaskSection,
    ValueForm(
        _read,
        lambda: {"anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/$defs/TaskSection"}]},
        "text, or a map of prompt, turns and user",
    ),
]
