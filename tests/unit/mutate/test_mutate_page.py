"""docs/mutation.md: every type with its weight, and examples that were really produced."""

from __future__ import annotations

import re
from pathlib import Path

from mutate_kit import SHOWN, mutated, shown

from holdfast.model.mutation import INTENT_KEPT, MODEL_MUTATIONS, MUTATION_WEIGHTS, MUTATIONS, REQUEST_MUTATIONS
from holdfast.mutate.bundled import read_corpus
from holdfast.mutate.expand import CORPORA

PAGE = (Path(__file__).parents[3] / "docs/mutation.md").read_text("utf-8")
TYPES = PAGE.split("\n## Types\n")[1].split("\n## ")[0]
ROWS = {
    row[1]: [cell.strip() for cell in re.split(r"(?<!\\)\|", row[2])[:-1]]
    for row in re.finditer(r"^\| `(\w+)` \|(.*)$", TYPES, re.MULTILINE)
}
REQUEST_WEIGHTS = dict(re.findall(r"^\| `(\w+)` \((\d\.\d)\) \|", PAGE, re.MULTILINE))


def test_the_page_has_every_type_with_its_weight() -> None:
    weights = {type: cells[0] for type, cells in ROWS.items()} | REQUEST_WEIGHTS
    assert {type: float(weight) for type, weight in weights.items()} == MUTATION_WEIGHTS
    assert REQUEST_WEIGHTS.keys() == REQUEST_MUTATIONS


def test_the_page_tells_attacks_from_what_keeps_the_intent() -> None:
    kept = TYPES.split("**Intent kept.**")[1].split("**Attacks**")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", kept, re.MULTILINE)) == INTENT_KEPT


def test_the_examples_are_what_comes_out() -> None:
    assert SHOWN in PAGE
    templates = {"angry": "I have waited for a week now! {prompt}"}
    for type in MUTATIONS:
        if type not in MODEL_MUTATIONS | REQUEST_MUTATIONS:
            made = mutated([type], [SHOWN], count=14, seed=0, templates=templates).tasks
            example = re.escape(ROWS[type][2]).replace("…", ".*")
            assert any(re.fullmatch(example, shown(task), re.DOTALL) for task in made), type


def test_the_page_says_how_many_attacks_there_are() -> None:
    assert {len(read_corpus(type)) for type in CORPORA} == {13, 14}
    assert "13 or 14 per type" in PAGE
