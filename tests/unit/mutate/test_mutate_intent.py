"""Mutations that keep the intent: names, units, quantities and quoted text keep their form, and only courtesies go."""

from __future__ import annotations

import html
import re
import tomllib
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from mutate_kit import mutated
from whole_encodings import WHOLE

from holdfast.model.mutation import MutationType
from holdfast.model.task import Task
from holdfast.mutate.mutator import read_languages

KEEPING: list[MutationType] = ["noise", "encoding_attacks", "length_extremes", "language_mixing", "token_manipulation"]
WRITTEN = tomllib.loads((Path(__file__).parent / "intent.toml").read_text("utf-8"))["prompts"]
NAMES = ("Apple", "Siemens", "May Turner", "IBM", "van Gogh Museum", "O'Brien")
AMOUNTS = ("250 mg", "3 kWh", "1.5 L", "12 GB", "90 km/h", "two", "at least 4", "37.5 °C")
FRAMES = (
    "{name} needs {amount} by tomorrow, is that possible?",
    "Could you please tell {name} that {amount} is enough?",
    "{name} braucht {amount} bis morgen, geht das?",
    "Je voudrais savoir si {name} a besoin de {amount} pour demain.",
)
MADE = [
    {"text": frame.format(name=name, amount=amount), "keep": [name.removeprefix("van "), amount.removeprefix("at ")]}
    for frame, (name, amount) in product(FRAMES, [*product(NAMES, AMOUNTS)][::3])
]
PROMPTS = [*WRITTEN, *MADE]


def read(name: str, text: str) -> str:
    """The mutation as its reader has it: what is encoded whole is decoded first."""
    return WHOLE[name](text.partition("\n\n")[2]) if name in WHOLE else text


@cache
def tasks_of(type: MutationType, seed: int) -> tuple[Task, ...]:
    """Of every prompt."""
    return mutated([type], [prompt["text"] for prompt in PROMPTS], count=24, seed=seed).tasks


def test_there_are_enough_prompts() -> None:
    assert len(PROMPTS) > 110


@pytest.mark.slow
def test_names_units_quantities_and_quoted_text_keep_their_form() -> None:
    for type in KEEPING:
        for seed in [0, 1]:
            kept = {prompt["text"]: prompt["keep"] for prompt in PROMPTS}
            lost = []
            for task in tasks_of(type, seed):
                made = read(task.variation.name, task.turns[0])
                lost += [
                    (task.variation.name, part, made[:200]) for part in kept[task.variation.source] if part not in made
                ]
            assert lost == [], (type, seed)


@pytest.mark.slow
@pytest.mark.parametrize("type", ["noise", "length_extremes", "language_mixing"])
def test_only_courtesies_go(type: MutationType) -> None:
    courtesies = {
        word
        for table in read_languages().values()
        for phrase in (*table.courtesies, *table.requests)
        for word in re.findall(r"\w+", phrase)
    }
    known = {prompt["text"]: set(" ".join(prompt.get("stays", ())).split()) for prompt in PROMPTS}
    for task in tasks_of(type, 1):
        stays = known[task.variation.source]
        source, made = (re.findall(r"\w+", text.lower()) for text in (task.variation.source, task.turns[0]))
        gone = set(source) - set(made)
        if task.variation.name in ("curt", "chatter_before", "chatter_after", "chatter_around", "repeated", "blank"):
            assert gone <= courtesies - stays, (task.variation.name, gone, task.turns[0][:200])
        else:
            assert len(made) >= len(source) - 2, (task.variation.name, task.turns[0])


def test_a_number_word_never_appears_by_a_slip_of_the_fingers() -> None:
    words = ["there", "form", "quite", "seat", "test", "tea", "nigh", "tow", "noe"]
    quantities = {word for table in read_languages().values() for word in table.quantities}
    for task in mutated(["noise", "encoding_attacks"], [f"it {word} is {word} here" for word in words], count=40).tasks:
        if task.variation.name not in WHOLE:
            made = set(re.findall(r"\w+", html.unescape(task.turns[0]).lower().replace("\u200b", "")))
            assert not made & quantities, task.turns[0]
            assert not any(word.isdigit() for word in made), task.turns[0]
