"""Loads `module:attribute`, the Python agent, in the process that runs it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from holdfast.agents.conversation import AgentMessage
from holdfast.agents.python.host_protocol import Unusable
from holdfast.errors import HoldfastError, UserError, format_error_place
from holdfast.model.codec import make_storable
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec
from holdfast.planes.describe import format_exception
from holdfast.planes.injection.active_injection import make_fault
from holdfast.planes.install import InstalledHooks, install, resolve
from holdfast.planes.open_call import load_exception

AgentInput: TypeAlias = str | list[AgentMessage]
"""The input of an agent: the question, or the messages up to it."""
AskFunction = Callable[[Any], Any]
ResetFunction = Callable[[], Any]


@dataclass(frozen=True)
class CallableAgent:
    """The agent in this process, ready to be asked."""

    ask: AskFunction
    is_async: bool = False
    """Whether its answer must be awaited."""
    takes_messages: bool = False
    """Whether it takes the list of all messages so far."""
    each_once: bool = False
    """Whether it gets each message only once: a runnable stores a conversation itself, or has none."""
    reset: ResetFunction | None = None


def prepare(scenarios: tuple[Scenario, ...]) -> None:
    """Import everything that the faults need, before the spec's folder can hide a library from Holdfast."""
    injections = [injection for scenario in scenarios for injection in scenario.injections]
    for injection in injections:
        make_fault(injection)
    if injections:
        from importlib.resources import files  # 3 ms that a calm run saves

        files("holdfast")  # faults read their texts this way; the first time it imports more


def load(agent: AgentSpec, scenarios: tuple[Scenario, ...]) -> tuple[CallableAgent, InstalledHooks]:
    """Import the agent; return it with the hooks on its tools."""
    loaded = load_agent(agent.endpoint, agent.input)
    reset = _resolve("agent.reset_function", agent.reset_function) if agent.reset_function else None
    if reset is not None and not callable(reset):
        text = f"agent.reset_function {agent.reset_function!r} cannot be called"
        raise _make_config_error(text, key="agent.reset_function")
    for scenario in scenarios:
        for injection in scenario.injections:
            if injection.raises:
                load_exception(injection.raises)
    return replace(loaded, reset=reset), install(agent)


def load_agent(endpoint: str, input_setting: str | None = None) -> CallableAgent:
    """Load a function, a coroutine function, or an object with ainvoke, invoke or __call__.

    `input_setting` is agent.input.
    """
    target = _resolve("agent.endpoint", endpoint)
    if isinstance(target, type):
        try:
            target = target()
        except TypeError as broken:
            text = f"agent.endpoint {endpoint!r} is a class that cannot be created without arguments: {broken}"
            raise _make_config_error(text, "name an instance of it, or a function") from broken
    for method in ("ainvoke", "invoke"):
        function = getattr(target, method, None)
        if callable(function):
            from holdfast.agents.python.runnable_input import choose_input_form  # few agents take more than text

            form = choose_input_form(endpoint, target, input_setting)
            awaited = inspect.iscoroutinefunction(function)
            return CallableAgent(_wrap_input(function, form), awaited, form.messages, each_once=True)
    if not callable(target):
        graph = callable(getattr(target, "compile", None))
        alternatives = "a function, or an object with invoke, ainvoke or __call__"
        text = f"agent.endpoint {endpoint!r} is a {type(target).__name__}, which cannot be called"
        raise _make_config_error(text, f"name {'the result of its compile()' if graph else alternatives}")
    if input_setting is not None:
        text = (
            f"agent.input has no meaning for agent.endpoint {endpoint!r}: it has no invoke and gets the prompt as text"
        )
        raise _make_config_error(text, "remove it, or name the runnable itself", key="agent.input")
    messages = _can_take_messages(endpoint, target)
    awaited = inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(getattr(target, "__call__", None))  # noqa: B004
    return CallableAgent(target, awaited, messages)


def _resolve(key: str, path: str) -> Any:
    try:
        return resolve(path)[0]
    except UserError as wrong:
        raise _make_config_error(str(wrong), wrong.hint, key=key) from None


def _make_config_error(text: str, hint: str = "", *, key: str = "") -> UserError:
    return UserError(text, code="agent-config-invalid", hint=hint, key=key)


def _can_take_messages(endpoint: str, target: Callable[..., Any]) -> bool:
    """Return whether the function's first parameter is called `messages`.

    Raises for a function that cannot be called with the prompt alone: that is a wiring error, not behaviour.
    """
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):  # some built-ins have none
        return False
    try:
        signature.bind("prompt")
    except TypeError:
        text = f"agent.endpoint {endpoint!r} cannot be called with the prompt alone: it takes {signature}"
        raise _make_config_error(text, "name a function with one argument: the prompt or `messages`") from None
    return next(iter(signature.parameters), "") == "messages"


def _wrap_input(invoke: Callable[[Any], Any], form: Callable[[AgentInput], Any]) -> AskFunction:
    """Wrap `invoke` to pass the prompt, or the messages, in the required form."""
    return lambda agent_input: invoke(form(agent_input))


def describe_import_error(broken: BaseException, root: str, agent: AgentSpec) -> Unusable:
    """Describe why the import failed, with the key of the spec and a suggestion for a mistyped name."""
    return make_storable(_describe_error(broken, root, agent))


def _describe_error(broken: BaseException, root: str, agent: AgentSpec) -> Unusable:
    if isinstance(broken, UserError):
        key = broken.key or ("agent.tools" if broken.code == "tool-unusable" else "agent.endpoint")
        return Unusable(str(broken), broken.hint, key=key, code=broken.code)
    if isinstance(broken, HoldfastError):
        return Unusable(str(broken), code=broken.code)
    own = _list_own_frames(broken, root)
    place = f" ({own[-1]})" if own else format_error_place(broken)
    hint, key = "", "agent.endpoint"
    if isinstance(broken, SystemExit):
        message = f"the agent's module called exit({broken.code}) while it was imported"
    elif isinstance(broken, ModuleNotFoundError):
        message = f"cannot import {broken.name!r}: no such module is installed or next to the spec"
        name, module = broken.name or "", agent.endpoint.partition(":")[0]
        hint, key = _suggest(name, root, module), _find_key(name, agent)
    elif isinstance(broken, SyntaxError):
        message = f"importing the agent failed: {type(broken).__name__}: {broken.msg}"
    else:
        message = f"importing the agent failed: {format_exception(broken)}"
    return Unusable(message + place, hint, _format_frames(broken, own), key=key)


def _find_key(module: str, agent: AgentSpec) -> str:
    """Return the key that names the module; the endpoint's own imports belong to the endpoint."""
    from holdfast.agents.python.source_check import list_references  # few agents cannot be imported

    keys = (key for key, path in list_references(agent) if path.partition(":")[0].partition(".")[0] == module)
    return next(keys, "agent.endpoint")


def _list_own_frames(broken: BaseException, root: str) -> list[str]:
    """Return `file:line` of each frame of the user's own code, the innermost last."""
    import traceback

    if isinstance(broken, SyntaxError) and broken.filename:
        return [f"{os.path.relpath(broken.filename, root)}:{broken.lineno}"]
    frames = traceback.extract_tb(broken.__traceback__)
    return [
        f"{os.path.relpath(frame.filename, root)}:{frame.lineno}"
        for frame in frames
        if frame.filename.startswith(f"{root}{os.sep}") and "-packages" not in frame.filename
    ]


def _format_frames(broken: BaseException, own: list[str]) -> str:
    """Format the frames in the user's own files, if there are several, and the exception."""
    import traceback

    raised = "".join(traceback.format_exception_only(broken)).rstrip()
    return "\n".join([*own, raised]) if len(own) > 1 else raised if isinstance(broken, SyntaxError) else ""


def _suggest(name: str, root: str, own: str) -> str:
    from difflib import get_close_matches

    from holdfast.agents.python.source_check import find_module_here  # few agents cannot be imported

    if own.partition(".")[0] == name and (local_name := find_module_here(own, root)):
        return f"did you mean {local_name}?"
    try:
        siblings = {entry.removesuffix(".py") for entry in os.listdir(root)} - {own}
    except OSError:
        return ""
    near = get_close_matches(name, sorted(siblings), 1)
    return f"did you mean {near[0]}?" if near else ""
