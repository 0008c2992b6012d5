"""A Job: everything that decides one run, settled before anything is run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import UNSET

from holdfast.errors import NotBuilt, SpecError, UserError
from holdfast.model.codec import canonical, digest
from holdfast.model.events import Event
from holdfast.model.spec import Problem, Spec
from holdfast.model.trial import Trial
from holdfast.plan import Plan, RunOptions, agent_json, plan
from holdfast.spec import shown_values
from holdfast.spec.load import source_of

Listen = Callable[[Event], None]
LARGE = 16 << 20
"""Bytes from which a file of an agent is known by its size and time: an interpreter or a model is not read each run."""


class Job:
    """A spec, what of it to run, and how."""

    def __init__(
        self, spec: Spec, options: RunOptions, environ: Mapping[str, str], warnings: tuple[str, ...] = ()
    ) -> None:
        refuse_unrunnable(spec)
        self.spec = spec
        self.options = options
        self.environ = environ
        self.warnings = (*warnings, *shown_values(spec, environ))
        self.plan: Plan = plan(spec, options.select, sequential=options.auto)
        self.secrets = world_secrets(spec, options, environ)
        """Values of the world's secrets by name."""

    @property
    def asked_first(self) -> Trial | None:
        """The preflight; none where that would leave marks which the trials would be judged by, or where the first
        question comes with tools that fail: a bad answer says nothing of the agent's reach then."""
        first = self.plan.preflight
        if first is None or not self.options.preflight:
            return None
        marked = self.spec.world is not None and self.spec.world.leaves_marks
        recorded = first.task.recording
        return None if marked or (recorded is not UNSET and recorded.has_failures) else first


def world_secrets(spec: Spec, options: RunOptions, environ: Mapping[str, str]) -> dict[str, str]:
    """The values of the world's secrets by name; UserError if one cannot be had."""
    if spec.world is None or not spec.world.secrets:
        return {}
    from holdfast.world.secrets import resolve_secrets

    root = Path(spec.path).resolve().parent
    trusted = options.allow_commands or root.is_relative_to(Path.cwd())
    return resolve_secrets(spec.world.secrets, environ, root, spec.seed, commands=trusted)


def told(spec: Spec, problems: Iterable[Problem]) -> tuple[str, ...]:
    """The warnings about a file, each as one line that says where."""
    return tuple(f"{spec.path}:{p.line}: {p.path} {p.message}" + (f" ({p.hint})" if p.hint else "") for p in problems)


def refuse_unrunnable(spec: Spec) -> None:
    """A contract that needs an engine this release does not have is refused, never run in part; so is one without a
    value for a number."""
    for name in spec.unsettled:
        raise UserError(f"the variable {name} is not set", hint=f"export {name}=… or write ${{{name}:-default}}")
    if not spec.unbuilt:
        return
    source = source_of(spec)
    problems = [
        Problem(u.why, u.section, line=u.position.line, column=u.position.column, hint=u.hint, code="not-built")
        for u in spec.unbuilt
    ]
    raise SpecError(spec.path, problems, source=source) if source or spec.built else NotBuilt(spec.unbuilt[0].why)


def agent_digest(spec: Spec) -> str:
    """Of the agent section and of the files beside the spec that it names."""
    root = Path(spec.path).resolve().parent
    agent = spec.agent
    paths = [ref.path for ref in (*agent.tools, *agent.llm)]
    paths += [p for p in (agent.tool_registry, agent.reset_function) if p]
    if agent.in_python:
        paths.append(agent.endpoint)
    parts = [agent_json(agent), *_started_files(spec, root)]
    for module in sorted({path.partition(":")[0] for path in paths}):
        place = root.joinpath(*module.split("."))
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if os.path.isfile(file):  # never raises
                parts.append(file_digest(file))
    return digest(canonical([part.decode("utf-8", "replace") for part in parts]), 16)


def _started_files(spec: Spec, root: Path) -> Iterator[bytes]:
    """The files beside the spec that a command names, and those that its models, servers and users are read from."""
    agent = spec.agent
    words = [*(agent.command or "").split(), agent.binary or "", *agent.args]
    read = [model.script for model in spec.models.values() if model.script]
    read += [task.user.script for task in spec.tasks if task.user is not UNSET]
    read += [agent.mcp_config] if isinstance(agent.mcp_config, str) else []
    for word in dict.fromkeys([*words, *read]):
        place = root / word.strip("'\"")
        if word and len(word) < 256 and os.path.isfile(place):
            yield file_digest(place)


def file_digest(path: Path) -> bytes:
    """Of what is in a file; of a large one its size and time stand for that; of one that cannot be read, the reason."""
    try:
        about = path.stat()
        if about.st_size > LARGE:
            return f"{about.st_size} bytes of {about.st_mtime_ns}".encode()
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").digest().hex().encode()
    except OSError as refused:
        return f"unreadable: {refused.strerror}".encode()
