"""What `holdfast run` wants of a file beyond one that loads."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.model.spec import Unbuilt
from holdfast.reading.reader import Reader
from holdfast.spec.sections.file import File

_NEEDED = {
    "version": "version: 1",
    "id": "a name in kebab-case, as in id: renewal-mail",
    "task": "task: {prompt: …}; a contract of golden_prompts is run by holdfast contract run",
    "invariants": "a map of name to rule: {description, weight, gate, check}",
}
"""The required keys of the scenario spelling, and what to write; `agent` is required everywhere."""


def scenario_problems(reader: Reader, file: File) -> None:
    """Reports required keys that are missing."""
    if file.run_rules:  # then it is a file of mutation runs, and is told so
        return
    for key, hint in _NEEDED.items():
        if not file.at.has(key):
            reader.error(file.at, key, "missing: holdfast run needs it", hint=hint, code="missing-key")


def scenario_unbuilt(file: File) -> Iterator[Unbuilt]:
    """A list of invariants holds the rules of mutation runs."""
    if file.run_rules:
        why = "Mutation runs of golden_prompts are not in this release; rules of a scenario are a map."
        yield Unbuilt("invariants", why, file.at.key("invariants").position)
