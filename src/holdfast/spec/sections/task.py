"""What is asked: `task:` and the entries of `golden_prompts:`."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import Struct

from holdfast.reading.fields import Schema, ValueForm, about
from holdfast.reading.node import Node
from holdfast.reading.reader import BAD, Reader
from holdfast.reading.words import found

_TEXT = Annotated[str, about("", min_length=1)]


def _read_script(reader: Reader, node: Node, path: str) -> Any:
    if node.kind != "list":
        return reader.read(_TEXT, node, path)
    from holdfast.spec.user_script import read_lines  # few files have users

    return read_lines(reader, node, path)


def _script_schema() -> Schema:
    text = {"type": "string", "minLength": 1}
    when = {**text, "description": "A regular expression that is looked for in the answer."}
    say = {**text, "description": "What the user then says."}
    rule = {"type": "object", "properties": {"when": when, "say": say}, "required": ["when", "say"]}
    items = {"anyOf": [text, {**rule, "additionalProperties": False}]}
    return {"anyOf": [text, {"type": "array", "items": items, "minItems": 1}]}


_SCRIPT = ValueForm(_read_script, _script_schema, "a file, or a list of texts and {when, say}")


class UserSection(Struct, frozen=True, kw_only=True):
    """A simulated user, who carries a conversation on when the written turns are over."""

    at: Node
    script: Annotated[Any, _SCRIPT, about("What the user says: a file next to the spec, or the list itself.")] = None
    model: Annotated[str | None, about("The model that plays the user, found in models:.", min_length=1)] = None
    goal: Annotated[str | None, about("What a model is to want of the agent.", min_length=1)] = None
    stop: Annotated[
        str | None, about("A regular expression: what an answer says when the conversation is over.", min_length=1)
    ] = None
    max_turns: Annotated[
        int, about("How often the agent is asked at most, the written turns included.", ge=2, le=100)
    ] = 5

    @property
    def script_file(self) -> str | None:
        """The file of its script; None if there is none, or the script is in the spec itself."""
        return self.script if isinstance(self.script, str) else None


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
