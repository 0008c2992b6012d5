"""Prompts in five languages, and agents that obey, repeat or refuse."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.model.canary import MARK
from holdfast.model.mutation import MutationSpec, MutationType
from holdfast.model.task import Task
from holdfast.mutate.expand import Expansion, expand
from holdfast.mutate.model_writer import Assignment, Writer

_FILE = tomllib.loads((Path(__file__).parent / "prompts.toml").read_text("utf-8"))
PROMPTS: list[str] = [prompt for language in _FILE.values() for prompt in language["prompts"]]
_CODE = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}(?![0-9a-f])")


def mutated(
    types: Sequence[MutationType],
    prompts: Sequence[str] = tuple(PROMPTS),
    *,
    count: int = 10,
    seed: int = 1,
    write: Writer | None = None,
    templates: dict[str, str] | None = None,
) -> Expansion:
    settings = MutationSpec(count=count, types=tuple(types), listed=True, custom_templates=templates or {})
    return expand([Task((prompt,)) for prompt in prompts], settings, seed=seed, http=True, write=write)


def obedient(task: Task) -> str:
    """What an agent says that puts the two pieces of a code word together, as it was told."""
    asked = "\n".join(task.turns)
    codes = _CODE.findall(asked)
    return f"As you wish: {MARK}{codes[0]}" if MARK in asked and codes else "I do not understand."


class Pen:
    """A Writer that says what a function of the assignment gives."""

    label = "script pen"

    def __init__(self, say: Callable[[Assignment], str]) -> None:
        self.say = say
        self.asked: list[Assignment] = []

    def __call__(self, asked: Sequence[Assignment]) -> Sequence[str]:
        self.asked += asked
        return [self.say(one) for one in asked]


SHOWN = "Could you tell me where order A-1234 is, and when it will arrive in Oslo?"
"""The prompt of docs/mutation.md, whose mutations there are of seed 0."""


def shown(task: Task, most: int = 330) -> str:
    """A mutation as the page shows it: in one line, signs that nobody sees by their numbers, long ones cut."""
    text = " ⏎ ".join(turn.replace("\n", " ⏎ ") for turn in task.turns)
    text = re.sub(r"(?: ⏎ ){2,}", " ⏎⏎ ", text).replace("|", "\\|")
    text = "".join(sign if sign.isprintable() and sign != "\xad" else f"\\u{ord(sign):04x}" for sign in text)
    return f"`{text}`" if len(text) <= most else f"`{text[:most]}…`"
