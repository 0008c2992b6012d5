"""Prompts, turns and simulated users, from the file to a Task, with their checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import UNSET

from holdfast.errors import SpecError
from holdfast.model.spec import Unbuilt
from holdfast.model.task import SimulatedUser, Task, UserScript
from holdfast.reading.file import is_openable
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.reading.words import find_near_name
from holdfast.spec.explain import report_inner
from holdfast.spec.references import find_names
from holdfast.spec.sections.file import File
from holdfast.spec.sections.task import TaskSection, UserSection, build_answer_pattern, read_script


def build_task(section: TaskSection, kind: Literal["golden", "task"]) -> Task:
    """Return the Task of a section; a task without a user keeps its old form."""
    user = UNSET if section.user is None else _build_user(section.user)
    return Task(section.prompts, kind, user=user)


def _build_user(section: UserSection) -> SimulatedUser:
    lines = section.script if isinstance(section.script, UserScript) else None
    return SimulatedUser(
        section.script_file or "",
        section.model or "",
        section.goal or "",
        section.stop or "",
        section.max_turns,
        lines,
    )


def _list_prompts(file: File) -> tuple[TaskSection, ...]:
    """Return all prompts of the file."""
    return (*file.golden_prompts, *((file.task,) if file.task is not None else ()))


def iter_users(file: File) -> Iterator[UserSection]:
    """Return the simulated users of the file."""
    return (task.user for task in _list_prompts(file) if task.user is not None)


def report_task_problems(reader: Reader, file: File) -> None:
    """Report sections without a prompt, and impossible users."""
    for task in _list_prompts(file):
        if not task.prompts and not reader.has_error(task.at.path):
            reader.report_missing(task.at, "prompt", hint="what the agent is asked")
        if task.user is not None:
            _report_user_problems(reader, task.user, len(task.prompts))


def _report_user_problems(reader: Reader, user: UserSection, written: int) -> None:
    at, path = user.at, user.at.path
    if user.script is not None and user.model is not None:
        reader.report_conflict(at.get_key("model"), "script and model cannot be combined", hint="remove one")
    elif user.script is None and user.model is None and not reader.has_error(path):
        hint = "script: a file with the user's messages, or model: the model that plays the user"
        reader.report(at, "needs one of script, model", hint=hint, code="missing-key")
    if user.model is not None and user.script is None and user.goal is None and not reader.has_error(f"{path}.goal"):
        reader.report_missing(at, "goal", hint="what the user wants from the agent")
    if user.model is None and user.script is not None and user.goal is not None:
        reader.report_conflict(at.get_key("goal"), "a goal is for a model, not for a script", hint="remove it")
    # The limit counts all turns. With as many written turns as allowed, the simulated user would never be asked.
    if user.max_turns <= written:
        message = (
            f"the task already has {written} written turn{'' if written == 1 else 's'}, so the user would never speak"
        )
        reader.report_conflict(at.get("max_turns"), message, hint=f"at least {written + 1}: the written turns count")
    lines = user.script if isinstance(user.script, UserScript) else UserScript()
    if user.script == UserScript() and not reader.has_error(f"{path}.script"):
        hint = "write a list of what the user says"
        reader.report(at.get("script"), "the user says nothing", hint=hint, code="empty")
    texts = [("script", text) for text in (*lines.texts, *(rule.say for rule in lines.rules))]
    for key, text in (("script", user.script_file), ("model", user.model), ("stop", user.stop), *texts):
        if text is not None and find_names(text).params:
            message = "{{ params }} are not filled in here"
            reader.report(at.get(key), message, hint="only the goal has them", code="unknown-reference")
    if user.stop is not None and (wrong := build_answer_pattern(user.stop).find_problem()):
        reader.report(at.get("stop"), wrong[0], hint=wrong[1], code="bad-regex")


def report_script_problems(reader: Reader, file: File, folder: Path) -> None:
    """Report problems in the scripts of users; missing files are reported elsewhere."""
    for user in iter_users(file):
        name = user.script_file
        if name is not None and not find_names(name).has_references and is_openable(folder / name):
            try:
                read_script(folder / name, label=name)
            except SpecError as wrong:
                report_inner(reader, user.at.get("script"), name, wrong.problems, code="bad-script")


def find_unbuilt_users(file: File) -> Iterator[Unbuilt]:
    """Yield the users whose model is not available here."""
    for user in iter_users(file):
        if user.model is not None:
            yield from find_unknown_model(file, user.model, user.at.get("model"))


def find_unknown_model(file: File, name: str, at: Node) -> Iterator[Unbuilt]:
    """Yield the model at this node, if nothing here answers for it."""
    from holdfast.planes.llm.sources.provider_hosts import describe_unknown_model, is_hosted, resolve_model

    models = {known: model.spec for known, model in file.models.items()}
    if resolve_model(models, name) is None:
        close = find_near_name(name, models)
        hint = f"did you mean {close}?" if close else ""
        yield Unbuilt(at.path, describe_unknown_model(name), at.position, hint, mistake=not is_hosted(name))
