"""Every error Holdfast raises on purpose.

HoldfastError
|-- UserError            the user can fix it: exit 4, printed without a traceback
|   |-- SpecError        a file that cannot be used; carries every problem in it
|   |-- NoServer         no server of this machine can be that service; a container could
|   |-- UsageError       options that do not fit
|   `-- NotBuilt         a section that this release cannot run
|-- AgentUnavailable     the agent cannot be reached or started: exit 3
|   `-- AgentMisconfigured  its section cannot be used as it is written: exit 4
|-- PluginError          a plug-in that breaks its protocol
|-- HarnessError         Holdfast failed: exit 3, never the agent's doing
|   |-- AgentLost        the process that runs the agent is lost
|   |-- SandboxFailed    a sandbox could not be opened, used or closed
|   `-- ServiceFailed    the server of a service did not start, answer or end
|-- NothingProven        there is nothing to run that could be judged: exit 5
|-- NothingToJudge       the rule has nothing to judge, whatever the agent does: unproven
|-- OutsideError         a path that leaves the workspace, or a link that the agent made to leave it
|-- QueryFailed          a database that refuses a statement
`-- InjectedError        raised inside the agent by a fault (a RuntimeError too; a lost reply also a ConnectionError)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from holdfast.model.observation import Answer
    from holdfast.model.score import Case
    from holdfast.model.spec import Problem


def format_error_place(error: BaseException) -> str:
    """` (file.py:12)`: the line of somebody else's code that raised it; empty if none did."""
    if isinstance(error, SyntaxError) and error.filename:  # a plug-in that cannot even be read
        return f" ({error.filename}:{error.lineno})"
    frame, place = error.__traceback__, ""
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        # A bug in a plug-in often shows in a library that it calls: its own line is the one to look at.
        standard = file.startswith(_STANDARD) and "-packages" not in file
        if not standard and not file.startswith((_OURS, "<")):
            place = f" ({file}:{frame.tb_lineno})"
        frame = frame.tb_next
    return place


_OURS = os.path.dirname(__file__) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep


class HoldfastError(Exception):
    """The root: anything Holdfast raises on purpose.

    `code` is a stable, kebab-case word for scripts and tests; the message is for people and may change.
    `model/codes.toml` says what each code means.
    """

    default_code: ClassVar[str] = ""

    def __init__(self, message: str = "", *, code: str = "") -> None:
        super().__init__(message)
        self.code = code or self.default_code


class UserError(HoldfastError):
    """Something the user can fix. `hint` says how, `key` where in the spec, if one key of it is at fault."""

    def __init__(self, message: str, *, code: str = "", hint: str = "", key: str = "") -> None:
        super().__init__(message, code=code)
        self.hint = hint
        self.key = key


class SpecError(UserError):
    """A spec that cannot be used, with all of its problems."""

    def __init__(self, file: str, problems: Sequence[Problem], *, source: str = "") -> None:
        count = sum(p.severity == "error" for p in problems)
        self.summary = f"{file}: {count} error{'' if count == 1 else 's'}"
        super().__init__(self.summary, code="spec-invalid")
        self.file = file
        self.problems = tuple(problems)
        self.source = source


class NoServer(UserError):
    """No server of this machine can be this service; a container could."""

    default_code = "service-unavailable"


class UsageError(UserError):
    """Options or arguments that are invalid or cannot be combined."""


class NotBuilt(UserError):
    """A section or command that this release does not implement."""


class AgentUnavailable(HoldfastError):
    """The agent cannot be reached, imported or started. `body` is its response, if any."""

    def __init__(
        self, message: str, *, code: str = "", hint: str = "", body: str = "", config: bool = False, key: str = ""
    ) -> None:
        super().__init__(message, code=code)
        self.hint = hint
        self.body = body
        self.key = key
        """The spec's key that is at fault, if one is."""
        self.config = config
        """The spec is wrong (exit 4), not the environment (exit 3)."""
        self.cases: tuple[Case, ...] = ()
        """The cases without a verdict, if it ends a run."""


class AgentMisconfigured(AgentUnavailable):
    """The agent's section cannot be used as it is written."""

    default_code = "agent-config-invalid"

    def __init__(self, message: str, *, code: str = "", hint: str = "", body: str = "", key: str = "") -> None:
        super().__init__(message, code=code, hint=hint, body=body, config=True, key=key)


class PluginError(HoldfastError):
    """A plug-in that cannot be loaded, or that violates its protocol."""

    default_code = "plugin-broken"


class HarnessError(HoldfastError):
    """Holdfast failed during a trial. `answer` is the agent's answer, if any; `details` is what a check printed."""

    def __init__(
        self, message: str, *, code: str = "", answer: Answer | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.answer = answer
        self.details = dict(details or {})


class AgentLost(HarnessError):
    """The process that runs the agent is lost: the trial proves nothing about the agent."""

    default_code = "agent-lost"


class SandboxFailed(HarnessError):
    """A sandbox could not be opened, used or closed."""

    default_code = "sandbox-failed"


class ServiceFailed(HarnessError):
    """The server of a service did not start, answer or end."""

    default_code = "service-failed"


class NothingProven(HoldfastError):
    """There is nothing to judge, so there is no verdict. Neither the agent nor Holdfast is at fault."""


class NothingToJudge(HoldfastError):
    """The rule has nothing to judge, whatever the agent does, so its verdict is unproven. `code` says why."""


class OutsideError(HoldfastError):
    """A path of the workspace that leads out of it, or to something other than a regular file or folder."""

    default_code = "path-outside"


class QueryFailed(HoldfastError):
    """A database refused a statement. `state` is its SQLSTATE, if it gave one."""

    default_code = "query-failed"

    def __init__(self, message: str, *, code: str = "", state: str = "") -> None:
        super().__init__(message, code=code)
        self.state = state


class InjectedError(RuntimeError, HoldfastError):
    """The exception that a tool or model function raises when a fault makes it fail."""

    def __init__(
        self, message: str, *, status_code: int | None = None, retry_after: float | None = None, body: Any = None
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.retry_after = retry_after
        self.body = body


class InjectedConnectionError(InjectedError, ConnectionError):
    """The same where a fault broke the connection, so that an agent that retries on ConnectionError does so."""
