"""What `holdfast run` wants of a file beyond one that loads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from holdfast.model.spec import Unbuilt
from holdfast.reading.reader import Reader
from holdfast.spec.sections.file import File

_NEEDED = {
    "version": "version: 1",
    "id": "a name in kebab-case, as in id: renewal-mail",
    "task": "task: {prompt: …}",
    "invariants": "a map of name to rule: {description, weight, gate, check}",
}
"""The required keys of the scenario spelling, and what to write; `agent` is required everywhere."""


def scenario_problems(reader: Reader, file: File, path: Path) -> None:
    """Reports required keys that are missing; of a contract, that another command runs it."""
    if file.run_rules:  # then it is a file of mutation runs, and is told so
        return
    if not file.at.has("task") and (file.contract is not None or file.golden_prompts):
        key = "contract" if file.contract is not None else "golden_prompts"
        hint = f"type: holdfast contract run {quote(str(path))}"
        message = "this file is a contract and has no task: holdfast run needs one"
        reader.error(file.at.key(key), key, message, hint=hint, code="missing-key")
        return
    for key, hint in _NEEDED.items():
        if not file.at.has(key):
            reader.error(file.at, key, "missing: holdfast run needs it", hint=hint, code="missing-key")


def scenario_unbuilt(file: File) -> Iterator[Unbuilt]:
    """A list of invariants holds the rules of mutation runs."""
    if file.run_rules:
        why = "Mutation runs of golden_prompts are not in this release; rules of a scenario are a map."
        yield Unbuilt("invariants", why, file.at.key("invariants").position)
