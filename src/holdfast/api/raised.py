"""Errors as Python code meets them: with all that the command line would print."""

from __future__ import annotations

from typing import TypeVar

from holdfast.errors import AgentUnavailable, HoldfastError, SpecError, UserError
from holdfast.report.safe import visible

E = TypeVar("E", bound=HoldfastError)
_SHOWN = 30
"""Lines of what an agent that cannot be used said."""


def lines(error: HoldfastError) -> list[str]:
    """What there is to say besides the error's own words: its problems, the agent's trace, what to do."""
    if isinstance(error, SpecError):
        from holdfast.spec.explain import explain

        return explain(error.file, error.source, error.problems).rstrip("\n").splitlines()
    if isinstance(error, AgentUnavailable):
        body = [f"  | {visible(line)}" for line in error.body.splitlines()[:_SHOWN]]
        return [*body, *([visible(error.hint)] if error.hint else [])]
    return [visible(error.hint)] if isinstance(error, UserError) and error.hint else []


def explained(error: E) -> E:
    """The error with those lines: in the message of a SpecError, else as a note, which Python prints below it; once."""
    note = "\n".join(lines(error))
    if isinstance(error, SpecError):
        error.args = (f"{error.summary}\n{note}",)  # what `print(error)` shows, too
    elif note and note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return error
