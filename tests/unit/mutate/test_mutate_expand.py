"""How many mutations there are, of which types, and that each is new."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace
from mutate_kit import PROMPTS, Pen, mutated

from example_counts import examples
from golden_words import Golden
from holdfast.errors import UserError
from holdfast.model.codec import encode
from holdfast.model.mutation import DEFAULT_MUTATIONS, MODEL_MUTATIONS, MUTATIONS, REQUEST_MUTATIONS, MutationSpec
from holdfast.model.task import DialogueMessage, Task
from holdfast.mutate.expand import expand, find_mutator
from holdfast.mutate.mutator import create_random

BY_PROGRAM = [type for type in MUTATIONS if type not in MODEL_MUTATIONS | REQUEST_MUTATIONS and type != "custom"]
GOLDEN = Task(("Where is order A-1234?",))


def counts(tasks: tuple[Task, ...]) -> dict[str, int]:
    return dict(Counter(task.variation.mutation for task in tasks))


def test_the_first_types_get_what_is_left_over() -> None:
    made = mutated(["noise", "token_manipulation", "prompt_injection"], PROMPTS[:1], count=11).tasks
    assert counts(made) == {"noise": 4, "token_manipulation": 4, "prompt_injection": 3}


def test_default_types_that_need_a_model_are_left_out_by_name_and_take_no_share() -> None:
    made = expand([GOLDEN], MutationSpec(), seed=0, http=False)
    assert [(left.type, "model" in left.why) for left in made.left_out] == [("paraphrase", True), ("tone_shift", True)]
    assert counts(made.tasks) == {type: 2 for type in DEFAULT_MUTATIONS if type not in MODEL_MUTATIONS}
    assert made.notes == ()


@pytest.mark.parametrize(
    ("type", "why"),
    [("paraphrase", "a model"), ("payload_size_attack", "not called over HTTP"), ("custom", "no custom_templates")],
)
def test_a_listed_type_that_cannot_be_made_is_an_error(type: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        expand([GOLDEN], MutationSpec(types=("noise", type), listed=True), seed=0, http=False)


def test_more_types_than_mutations_is_said(golden: Golden) -> None:
    made = mutated(["noise", "token_manipulation", "prompt_injection"], PROMPTS[:1], count=2)
    golden(made.notes)


def test_a_type_without_more_mutations_says_how_many_it_has(golden: Golden) -> None:
    made = mutated(["custom"], PROMPTS[:2], count=5, templates={"a": "Now: {prompt}", "b": "{prompt} Now!"})
    assert [(task.variation.name, task.turns[0]) for task in made.tasks][:2] == [
        ("a", f"Now: {PROMPTS[0]}"),
        ("b", f"{PROMPTS[0]} Now!"),
    ]
    golden(made.notes)


def test_the_same_seed_gives_the_same_and_another_seed_others() -> None:
    first, again, other = (mutated(BY_PROGRAM, PROMPTS, count=22, seed=seed).tasks for seed in (7, 7, 8))
    assert encode(first) == encode(again)
    assert sum(a.turns != b.turns for a, b in zip(first, other, strict=True)) > 0.7 * len(first)


def test_a_prompt_is_mutated_alike_whatever_stands_next_to_it() -> None:
    alone = mutated(BY_PROGRAM, PROMPTS[3:4], count=30).tasks
    among = [task for task in mutated(BY_PROGRAM, PROMPTS, count=30).tasks if task.variation.source == PROMPTS[3]]
    assert list(alone) == among


@pytest.mark.parametrize("prompt", ["Hi", "42", "?", "a", "你好", "Where is order A-1234?"])
def test_no_two_mutations_of_a_prompt_are_the_same(prompt: str) -> None:
    made = mutated(BY_PROGRAM, [prompt], count=300)
    turns = [task.turns for task in made.tasks]
    assert len(set(turns)) == len(turns) > 100
    assert (prompt,) not in turns


def test_what_is_left_over_of_small_prompts_is_reported(golden: Golden) -> None:
    made = mutated(["token_manipulation"], ["?"], count=500)
    assert 0 < len(made.tasks) < 500
    golden(made.notes)


def test_a_prompt_that_is_there_twice_is_mutated_once() -> None:
    made = expand([GOLDEN, GOLDEN], MutationSpec(types=("noise",)), seed=0, http=False)
    assert len(made.tasks) == 10


def test_of_several_turns_the_first_is_mutated_and_the_rest_stays() -> None:
    before = (DialogueMessage("user", "Good day."),)
    golden = replace(Task(("Where is order A-1234?", "And the invoice?")), context=before)
    made = expand([golden], MutationSpec(types=("noise", "multi_turn_attack")), seed=0, http=False).tasks
    assert {task.turns[-1] for task in made} == {"And the invoice?"}
    assert {task.context for task in made} == {before}
    assert {task.variation.source for task in made} == {golden.prompt}
    assert {len(task.turns) for task in made} == {2, 4}
    assert GOLDEN.context is UNSET


def test_weights_are_those_of_the_settings() -> None:
    made = expand([GOLDEN], MutationSpec(types=("noise",), weights={"noise": 2.5}), seed=0, http=False).tasks
    assert {task.variation.weight for task in made} == {2.5}


def test_a_blank_prompt_has_no_mutation_and_that_is_said() -> None:
    made = mutated(["noise", "prompt_injection"], ["   "], count=4)
    assert made.tasks == ()
    assert len(made.notes) == 2


def test_a_model_is_not_asked_where_no_type_needs_one() -> None:
    pen = Pen(lambda one: "")
    assert len(mutated(["noise"], PROMPTS[:1], write=pen).tasks) == 10
    assert pen.asked == []


def test_a_parameter_of_the_matrix_stays_a_parameter() -> None:
    prompt = "Where is order {{ params.order }} of the customer, and when does it arrive?"
    made = mutated(BY_PROGRAM, [prompt], count=220).tasks
    assert len(made) > 200
    assert [task.turns for task in made if "{{ params.order }}" not in "".join(task.turns)] == []


# -- any prompt at all ----------------------------------------------------------------------------
ANY_TEXT = st.text(st.characters(), max_size=60) | st.text("aA \n'\"{}.?\ud800\u0301ßİ7", max_size=20)


@pytest.mark.parametrize("type", BY_PROGRAM)
@given(prompt=ANY_TEXT, n=st.integers(0, 40), seed=st.integers(0, 3))
@settings(max_examples=examples(60), deadline=None)
def test_a_mutator_takes_any_prompt_and_never_gives_it_back(type: str, prompt: str, n: int, seed: int) -> None:
    mutator = find_mutator(type)
    made = mutator.mutate(prompt, n, Random(seed))
    assert made == mutator.mutate(prompt, n, Random(seed))
    assert (made is None) <= (not prompt.strip() or "{{" in prompt or type not in ("encoding_attacks", "noise"))
    if made is not None:
        assert made.turns != (prompt,)
        assert all(turn.strip() for turn in made.turns)


@given(prompt=ANY_TEXT)
@settings(max_examples=examples(60), deadline=None)
def test_tasks_of_any_prompt_can_be_stored_and_differ(prompt: str) -> None:
    made = mutated(BY_PROGRAM, [prompt], count=22).tasks
    assert len({encode(task.turns) for task in made}) == len(made)
    assert all(task.digest for task in made)


@given(seed=st.integers(0), prompt=ANY_TEXT, n=st.integers(0, 99))
def test_dice_depend_on_all_that_they_are_made_of(seed: int, prompt: str, n: int) -> None:
    throw = create_random(seed, prompt, "noise", n).random()
    assert throw == create_random(seed, prompt, "noise", n).random()
    others = (create_random(seed + 1, prompt, "noise", n), create_random(seed, prompt + "x", "noise", n),
              create_random(seed, prompt, "custom", n), create_random(seed, prompt, "noise", n + 1))  # fmt: skip
    assert throw not in [other.random() for other in others]
