"""Each mutator on fifty prompts in five languages: it changes what it should, and keeps what it should."""

from __future__ import annotations

import html
import re
import unicodedata
from pathlib import Path

import pytest
from mutate_kit import PROMPTS, SHOWN, mutated, shown
from whole_encodings import WHOLE

from holdfast.model import mutation
from holdfast.model.canary import MARK
from holdfast.model.task import Task
from holdfast.mutate.encoding_attacks import HOMOGLYPHS, LEET
from holdfast.mutate.expand import CORPORA
from holdfast.mutate.mutator import read_corpus
from holdfast.mutate.words import find_exact_parts, find_names

BY_PROGRAM: list[mutation.MutationType] = [
    type
    for type in mutation.MUTATIONS
    if type not in mutation.MODEL_MUTATIONS | mutation.REQUEST_MUTATIONS and type != "custom"
]
KEEPING = [type for type in BY_PROGRAM if type in mutation.INTENT_KEPT]
INVISIBLE = re.compile("[\u200b-\u200d\u2060\ufeff\u00ad]")


def variations(type: mutation.MutationType, count: int = 12, least: float = 0.8) -> list[tuple[Task, str, str]]:
    """Tasks with the name of their technique and their prompt."""
    made = mutated([type], count=count).tasks
    assert len(made) >= least * count * len(PROMPTS), f"{type} gives too few"
    return [(task, task.variation.name, task.variation.source) for task in made]


def normal(text: str) -> str:
    """Without signs that nobody sees, in plain letters."""
    return unicodedata.normalize("NFKC", INVISIBLE.sub("", text)).casefold()


def test_there_are_fifty_prompts_in_five_languages_and_they_have_something_to_keep() -> None:
    assert len(PROMPTS) == len(set(PROMPTS)) == 50
    assert sum(bool(find_exact_parts(prompt)) for prompt in PROMPTS) >= 35
    assert sum(bool(find_names(prompt)) for prompt in PROMPTS) >= 20


@pytest.mark.slow
def test_every_prompt_is_mutated_and_none_comes_out_as_it_went_in() -> None:
    for type in BY_PROGRAM:
        made = variations(type)
        assert {source for _, _, source in made} == set(PROMPTS), type
        assert [task for task, _, source in made if task.turns == (source,)] == [], type
        assert all(task.kind == "mutation" and task.variation.mutation == type for task, _, _ in made), type
        assert all(task.variation.attack == (type not in mutation.INTENT_KEPT) for task, _, _ in made), type


@pytest.mark.slow
def test_a_type_uses_many_techniques() -> None:
    for type in BY_PROGRAM:
        assert len({name for _, name, _ in variations(type)}) >= 5, type


@pytest.mark.slow
@pytest.mark.parametrize("type", [type for type in KEEPING if type != "encoding_attacks"])
def test_numbers_quoted_text_and_names_are_kept(type: mutation.MutationType) -> None:
    exchanged = {"Sie"}  # German courtesies look like names
    for task, name, source in variations(type):
        for part in {*find_exact_parts(source), *find_names(source)} - exchanged:
            assert normal(part) in normal(task.turns[0]), (name, part, task.turns[0][:300])


def test_what_is_encoded_can_be_read_back() -> None:
    read = set()
    for task, name, source in variations("encoding_attacks", 22, 0.65):
        text = task.turns[0]
        if name in WHOLE:
            explained, _, encoded = text.partition("\n\n")
            assert WHOLE[name](encoded) == source, name
            assert "ecode it" in explained
        elif name == "leetspeak":
            assert text.translate(LEET) == source.translate(LEET)
        elif name == "homoglyphs":
            assert text.translate(HOMOGLYPHS) == source.translate(HOMOGLYPHS)
        elif name == "full_width":
            assert unicodedata.normalize("NFKC", text) == unicodedata.normalize("NFKC", source)
        else:
            assert html.unescape(INVISIBLE.sub("", text)) == source, name
        read.add(name)
    assert len(read) == 11


def test_encoding_in_part_leaves_numbers_as_they_are() -> None:
    for task, name, source in variations("encoding_attacks"):
        if name not in WHOLE:
            assert all(part in task.turns[0] for part in find_exact_parts(source)), name


def test_length_goes_both_ways() -> None:
    made = variations("length_extremes")
    longer = [task for task, _, source in made if len(task.turns[0]) > 1_000 + len(source)]
    shorter = [task for task, _, source in made if len(task.turns[0]) < len(source)]
    assert len(longer) > 200
    assert len(shorter) > 20
    assert max(len(task.turns[0]) for task, _, _ in made) < 10_000


def test_noise_stays_readable() -> None:
    for task, name, source in variations("noise"):
        if name.endswith(("letters", "keys")):
            assert abs(len(task.turns[0]) - len(source)) <= len(source.split()), name
        if name in ("lower_case", "random_case", "shouted"):
            assert task.turns[0].casefold() == source.casefold()


def test_other_languages_come_in() -> None:
    made = variations("language_mixing")
    assert any("Merci" in task.turns[0] for task, _, _ in made)
    swapped = [task for task, name, source in made if name == "words"]
    assert len(swapped) > 30, "words of the tables stand in most prompts"


def test_tokens_change_and_words_do_not() -> None:
    for task, name, source in variations("token_manipulation"):
        if name in ("joiners", "soft_hyphens"):
            assert INVISIBLE.sub("", task.turns[0]) == source
        if name in ("odd_spaces", "wide_spaces"):
            assert task.turns[0].split() == source.split()


# -- attacks --------------------------------------------------------------------------------------
@pytest.mark.parametrize("type", CORPORA)
def test_an_attack_holds_the_prompt_and_the_pieces_of_its_canary(type: mutation.MutationType) -> None:
    for task, name, source in variations(type):
        text = "\n".join(task.turns)
        (canary,) = task.variation.canaries
        assert source in text, name
        assert MARK in text, name
        assert canary.removeprefix(MARK) in text, name
        assert canary not in text, f"{name}: who repeats it would be blamed"
        assert not re.search(r"\{(?:prompt|word|mark|code|past|future)\}", text), name


@pytest.mark.parametrize("type", CORPORA)
def test_a_corpus_has_a_dozen_attacks_of_different_names_and_one_wants_a_tool(type: mutation.MutationType) -> None:
    entries = read_corpus(type)
    assert len(entries) >= 12
    assert len({entry.name for entry in entries}) == len({entry.turns for entry in entries}) == len(entries)
    assert all("`" + entry.action + "`" in str(entry.turns) or entry.action in str(entry.turns) for entry in entries)
    assert (type == "advanced_jailbreak") <= any(entry.action for entry in entries)


def test_no_text_is_in_two_corpora() -> None:
    texts = [entry.turns for type in CORPORA for entry in read_corpus(type)]
    assert len(set(texts)) == len(texts) >= 72


def test_canaries_are_new_in_each_attack() -> None:
    made = mutated(CORPORA, count=12).tasks
    canaries = [task.variation.canaries for task in made]
    assert len(set(canaries)) == len(canaries)


def test_an_attack_in_several_turns_ends_with_the_prompt_whose_answer_rules_read() -> None:
    for task in mutated(["multi_turn_attack"], count=13).tasks:
        assert len(task.turns) >= 3
        assert task.turns[-1] == task.variation.source


# docs/mutation.md: every type with its weight, and examples that were really produced.


PAGE = (Path(__file__).parents[3] / "docs/mutation.md").read_text("utf-8")
TYPES = PAGE.split("\n## Types\n")[1].split("\n## ")[0]
ROWS = {
    row[1]: [cell.strip() for cell in re.split(r"(?<!\\)\|", row[2])[:-1]]
    for row in re.finditer(r"^\| `(\w+)` \|(.*)$", TYPES, re.MULTILINE)
}
REQUESTS = PAGE.split("\n## Mutations of the HTTP request\n")[1].split("\n## ")[0]
REQUEST_WEIGHTS = dict(re.findall(r"^\| `(\w+)` \| (\d\.\d) \|", REQUESTS, re.MULTILINE))


def test_the_page_has_every_type_with_its_weight() -> None:
    weights = {type: cells[0] for type, cells in ROWS.items()} | REQUEST_WEIGHTS
    assert {type: float(weight) for type, weight in weights.items()} == mutation.MUTATION_WEIGHTS
    assert REQUEST_WEIGHTS.keys() == mutation.REQUEST_MUTATIONS


def test_the_page_tells_attacks_from_what_keeps_the_intent() -> None:
    kept = TYPES.split("**Intent kept.**")[1].split("**Attacks**")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", kept, re.MULTILINE)) == mutation.INTENT_KEPT


def test_the_examples_are_what_comes_out() -> None:
    assert SHOWN in PAGE
    templates = {"in_a_hurry": "Quick, I am on the phone: {prompt}"}
    for type in mutation.MUTATIONS:
        if type not in mutation.MODEL_MUTATIONS | mutation.REQUEST_MUTATIONS:
            made = mutated([type], [SHOWN], count=14, seed=0, templates=templates).tasks
            example = re.escape(ROWS[type][2]).replace("…", ".*")
            assert any(re.fullmatch(example, shown(task), re.DOTALL) for task in made), type


def test_the_page_says_how_many_attacks_there_are() -> None:
    assert {len(read_corpus(type)) for type in CORPORA} == {13, 14}
    assert "13 or 14 per type" in PAGE
