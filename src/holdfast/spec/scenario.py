"""What `holdfast run` wants of a file beyond one that loads."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

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
    if not file.at.has("task") and (file.contract is not None or file.golden_prompts):
        key = "contract" if file.contract is not None else "golden_prompts"
        hint = f"type: holdfast contract run {quote(str(path))}"
        message = "this file is a contract and has no task: holdfast run needs one"
        reader.error(file.at.key(key), key, message, hint=hint, code="missing-key")
        return
    if file.run_rules:
        message = "a list holds the rules of golden prompts: those of a task are a map"
        hint = f"write {_NEEDED['invariants']}, or add golden_prompts"
        reader.error(file.at.key("invariants"), "invariants", message, hint=hint, code="wrong-type")
        return
    for key, hint in _NEEDED.items():
        if not file.at.has(key):
            reader.error(file.at, key, "missing: holdfast run needs it", hint=hint, code="missing-key")
