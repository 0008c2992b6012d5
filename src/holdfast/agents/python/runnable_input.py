"""Builds the input of a LangChain runnable from a prompt: as messages, under a key, or as text."""

from __future__ import annotations

import typing
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any

from holdfast.agents.conversation import AgentMessage
from holdfast.agents.python.runnable_places import (
    AcceptedInput,
    has_type,
    infer_accepted,
    infer_from_schema,
    resolve_ref,
)
from holdfast.errors import UserError


@dataclass(frozen=True)
class InputForm:
    """Where in an input the prompt goes, and in which form."""

    key: str = ""
    """The key of the mapping; empty if the prompt itself is the input."""
    messages: bool = False
    dicts: bool = False

    def __call__(self, agent_input: str | list[AgentMessage]) -> Any:
        """Build the input with this prompt or these messages."""
        if not self.key:
            return agent_input
        if not self.messages:
            return {self.key: agent_input}
        listed = [{"role": "user", "content": agent_input}] if isinstance(agent_input, str) else agent_input
        return {self.key: [self._format_message(message) for message in listed]}

    def _format_message(self, message: AgentMessage) -> AgentMessage | tuple[str, str]:
        role, content = message["role"], message["content"]
        if role == "tool":  # a tool's message needs the id of a call, and there is none
            role, content = "assistant", f"Tool result: {content}"
        return {"role": role, "content": content} if self.dicts else (role, content)


TEXT, INPUT, MESSAGES = InputForm(), InputForm("input"), InputForm("messages", messages=True)


def choose_input_form(endpoint: str, target: Any, by_hand: str | None) -> InputForm:
    """Return how this runnable takes a prompt; raise UserError if that is unknown or contradicts `agent.input`."""
    schema = read_input_schema(target)
    if by_hand is not None:
        return _choose_by_setting(endpoint, schema, by_hand)
    if schema is None:  # an object that the user wrote
        return INPUT
    form = _choose_by_schema(schema)
    if form is None:
        raise _make_place_error(
            endpoint, f"asks for {schema.description}, which does not show where the prompt belongs"
        )
    missing = sorted(schema.required - {form.key}) if schema.checked else []
    if missing:
        raise _make_place_error(endpoint, f"asks for {schema.description}: no value is known for {', '.join(missing)}")
    return form


def _choose_by_schema(schema: InputSchema) -> InputForm | None:
    """Choose `messages`, `input`, the only key or the only required one; plain text if that is accepted."""
    if not schema.keys:
        return TEXT if schema.is_text else None
    # The usual names come first, since a schema may have many optional keys. Any other key must be the only candidate:
    # a prompt in the wrong place would be ignored without an error.
    if schema.keys.get("messages", AcceptedInput()).messages:
        return _make_form("messages", schema, messages=True)
    if schema.keys.get("input", AcceptedInput()).text:
        return INPUT
    only = [*(schema.required or schema.keys)]
    takes = schema.keys[only[0]]
    if len(only) > 1 or not (takes.text or takes.messages):
        return None
    return _make_form(only[0], schema, messages=not takes.text)


def _choose_by_setting(endpoint: str, schema: InputSchema | None, setting: str) -> InputForm:
    if schema is not None and schema.is_graph and schema.keys and setting not in schema.keys:
        # A graph drops an unknown key and answers nevertheless: the model would never get the prompt.
        raise UserError(
            f"agent.input is {setting}, but the input of agent.endpoint {endpoint!r} is {schema.description}",
            code="agent-input-unknown",
            hint=f"set agent.input to the key for the prompt: {', '.join(schema.keys)}",
            key="agent.input",
        )
    if setting == "text":
        return TEXT
    takes = schema.keys.get(setting, AcceptedInput(text=True)) if schema is not None else AcceptedInput(text=True)
    return _make_form(setting, schema, messages=setting == "messages" or not takes.text)


def _make_form(key: str, schema: InputSchema | None, *, messages: bool) -> InputForm:
    takes = schema.keys.get(key, AcceptedInput()) if schema is not None else AcceptedInput()
    return InputForm(key, messages, takes.dicts)


def _make_place_error(endpoint: str, why: str) -> UserError:
    return UserError(
        f"the prompt cannot be placed: the input schema of agent.endpoint {endpoint!r} {why}",
        code="agent-input-unknown",
        hint="set type: langchain and agent.input to messages, input, text, or the key for the prompt; "
        "or name a function that takes the prompt and invokes it",
        key="agent.input",
    )


@dataclass(frozen=True)
class InputSchema:
    """The input that a schema describes."""

    keys: Mapping[str, AcceptedInput] = field(default_factory=dict)
    """The keys of a mapping; empty if it is not a mapping, or accepts any keys."""
    required: frozenset[str] = frozenset()
    """The required keys."""
    is_text: bool = False
    """Whether plain text is accepted."""
    is_graph: bool = False
    """Whether it is a graph's state, which drops unknown keys and fills in missing ones."""
    checked: bool = False
    """Whether a mapping without a required key is rejected when it is invoked."""
    description: str = ""
    """A description of the schema, for messages."""


def read_input_schema(target: Any) -> InputSchema | None:
    """Return the input that this runnable describes; None for an object without a schema."""
    inner = _find_inner(target)
    builder = getattr(inner, "builder", None)
    for name in ("input_schema", "input", "schema"):  # the current name in LangGraph, and the earlier one
        state = getattr(builder, name, None)
        channels = getattr(builder, "schemas", {}).get(state) if isinstance(state, typing.Hashable) else None
        if channels is not None and "__root__" not in channels:
            return _read_graph_schema(state, channels, getattr(builder, "managed", {}))
    if "AgentExecutor" in _list_class_names(
        inner
    ):  # its schema accepts any keys; without the right one its prompt raises
        return InputSchema({"input": AcceptedInput(text=True)}, description="a mapping with input")
    if not any(callable(getattr(target, name, None)) for name in ("get_input_jsonschema", "get_input_schema")):
        return None
    try:
        with warnings.catch_warnings(action="ignore"):
            schema = _get_json_schema(target)
    except Exception as broken:  # pydantic cannot describe every type, and raises exceptions of many kinds
        # The type that the runnable or its function declares; annotations may be text.
        function = getattr(inner, "func", None) or getattr(inner, "afunc", None)
        hints = [hint for name, hint in _get_type_hints(function).items() if name != "return"] if function else []
        kind = hints[0] if hints else getattr(inner, "InputType", None)
        return _read_type_schema(kind, f"a schema that cannot be read ({type(broken).__name__})")
    return _read_json_schema(schema)


_INNER = {"RunnableWithMessageHistory": "", "RunnableBindingBase": "bound", "RunnableSequence": "first"}
"""Runnables that pass their input on unchanged, with the attribute that gets it; the first match counts."""


def _find_inner(target: Any) -> Any:
    """Return the inner runnable that receives the input."""
    for _ in range(20):
        kinds = _list_class_names(target)
        inner = next((attribute for name, attribute in _INNER.items() if name in kinds), "")
        if not inner or not hasattr(target, inner):
            break
        target = getattr(target, inner)
    return target


def _list_class_names(target: Any) -> set[str]:
    """Return the names of its classes: the libraries themselves are not imported here."""
    return {kind.__name__ for kind in type(target).__mro__}


def _read_graph_schema(state: Any, channels: Mapping[str, Any], managed: Mapping[str, Any]) -> InputSchema:
    hints = _get_type_hints(state)
    keys = {name: infer_accepted(hints.get(name, Any)) for name in channels if name not in managed}
    required = _find_required_keys(state, keys)
    return InputSchema(keys, required, is_graph=True, checked=not _is_typed_dict(state), description=_describe(keys))


def _read_type_schema(kind: Any, description: str) -> InputSchema:
    """Return the input of a runnable that names a type and has no other schema."""
    if _is_typed_dict(kind):
        keys = {name: infer_accepted(hint) for name, hint in _get_type_hints(kind).items()}
        return InputSchema(keys, _find_required_keys(kind, keys), description=_describe(keys))
    return InputSchema(is_text=kind is str, description=description)


def _is_typed_dict(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "__required_keys__")  # the class of typing_extensions differs


def _get_type_hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except Exception:  # annotations are code, and may use missing names
        return {}


def _find_required_keys(kind: Any, keys: Iterable[str]) -> frozenset[str]:
    """Return the keys without a default."""
    if _is_typed_dict(kind):
        required: Iterable[str] = kind.__required_keys__
    elif is_dataclass(kind):
        required = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    else:
        required = [name for name, info in getattr(kind, "model_fields", {}).items() if info.is_required()]
    return frozenset(required) & frozenset(keys)


def _get_json_schema(target: Any) -> Mapping[str, Any]:
    if callable(getattr(target, "get_input_jsonschema", None)):
        return typing.cast(Mapping[str, Any], target.get_input_jsonschema())
    model = target.get_input_schema()
    return typing.cast(Mapping[str, Any], (getattr(model, "model_json_schema", None) or model.schema)())


def _read_json_schema(schema: Mapping[str, Any]) -> InputSchema:
    defs = schema.get("$defs") or schema.get("definitions") or {}
    schema = resolve_ref(schema, defs)
    properties: Mapping[str, Any] = schema.get("properties") or {}
    if set(properties) == {"root"}:  # how some versions describe an input that is not a mapping
        schema, properties = resolve_ref(properties["root"], defs), {}
    keys = {name: infer_from_schema(inner, defs) for name, inner in properties.items()}
    required = frozenset(schema.get("required") or ()) & frozenset(keys)
    if keys:
        return InputSchema(keys, required, checked=True, description=_describe(keys))
    typed = has_type(schema)
    description = f"{schema['type']}" if isinstance(schema.get("type"), str) else "any of several types"
    return InputSchema(
        is_text=typed and infer_from_schema(schema, defs).text, description=description if typed else "anything"
    )


def _describe(keys: Mapping[str, AcceptedInput]) -> str:
    return f"a mapping with {', '.join(keys)}" if keys else "a mapping of any keys"
