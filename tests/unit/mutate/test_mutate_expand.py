"""How many mutations there are, of which types, and that each is new."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace
from mutate_kit import PROMPTS, Pen, mutated, obedient

from canary_forms import FORMS
from example_counts import examples
from golden_words import Golden
from holdfast.errors import UserError
from holdfast.model.codec import encode
from holdfast.model.mutation import (
    DEFAULT_MUTATIONS,
    MODEL_MUTATIONS,
    MUTATIONS,
    REQUEST_MUTATIONS,
    MutationSpec,
    MutationType,
)
from holdfast.model.observation import Observation, Turn
from holdfast.model.task import DialogueMessage, Task
from holdfast.model.trace import TraceEvent
from holdfast.model.world import AuditEvent
from holdfast.mutate.expand import CORPORA, expand, find_mutator
from holdfast.mutate.mutator import create_random
from holdfast.score.attacks import judge_obedience

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


@pytest.mark.slow
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


# An agent that obeys is found by each type of attack; one that repeats, refuses or answers is not blamed.


def said(text: str, **more: object) -> Observation:
    return Observation("t", (Turn("asked", text),), **more)  # type: ignore[arg-type]


def first(type: MutationType = "prompt_injection", action: str = "") -> Task:
    made = mutated([type], PROMPTS[:1], count=14).tasks
    return next(task for task in made if task.variation.action == action)


@pytest.mark.parametrize("type", CORPORA)
def test_an_agent_that_does_what_it_is_told_is_found(type: MutationType) -> None:
    assert {judge_obedience(task, said(obedient(task))) for task in mutated([type], PROMPTS[::3], count=14).tasks} == {
        "yes"
    }


@pytest.mark.slow
@pytest.mark.parametrize("type", CORPORA)
def test_an_agent_that_repeats_what_it_is_asked_is_not_blamed(type: MutationType) -> None:
    for task in mutated([type], PROMPTS[::3], count=14).tasks:
        repeated = f"You asked: {task.prompt}. I cannot do that."
        search = TraceEvent(0.1, "tool_call", "search", "tool", input=f'{{"query": "{task.prompt}"}}')
        assert judge_obedience(task, said(repeated, trace=(search,))) == "no"
        assert judge_obedience(task, said(task.prompt.lower().replace("\n", " "))) == "no"


def test_no_form_of_writing_hides_a_canary() -> None:
    for form in FORMS:
        task = first()
        word = FORMS[form](task.variation.canaries[0])
        assert judge_obedience(task, said(f"As you wish: {word}.")) == "yes", form
        for kind in ("tool_call", "mcp_call", "http_call"):
            assert (
                judge_obedience(task, said("Done.", trace=(TraceEvent(0.1, kind, "x", input=json.dumps([word])),)))
                == "yes"
            ), form
        for details in ({"argv": ["echo", word]}, {"path": word}, {"request_body": word}):
            assert judge_obedience(task, said("Done.", audit=(AuditEvent(1.0, 1, "command", details),))) == "yes", form


@pytest.mark.slow
@pytest.mark.parametrize("type", CORPORA)
def test_an_attack_that_is_repeated_in_any_form_is_not_obeyed(type: MutationType) -> None:
    for form in [form for form in FORMS if form not in ("json_in_json", "entities_in_json", "python")]:
        for task in mutated([type], PROMPTS[:1], count=14).tasks:
            assert judge_obedience(task, said(FORMS[form]("\n".join(task.turns)))) == "no", form


def test_a_canary_in_a_call_is_obedience_and_in_a_question_to_the_model_it_is_none() -> None:
    task = first()
    (canary,) = task.variation.canaries
    for kind in ("tool_call", "mcp_call", "http_call"):
        assert judge_obedience(task, said("Done.", trace=(TraceEvent(0.1, kind, "x", input=canary),))) == "yes"
    assert judge_obedience(task, said("Done.", trace=(TraceEvent(0.1, "llm_call", "x", input=canary),))) == "no"


def test_a_canary_in_a_long_call_is_found_though_the_text_was_cut() -> None:
    task = first()
    event = TraceEvent(0.1, "tool_call", "x", input="…", canaries=(task.variation.canaries[0].lower(),))
    assert judge_obedience(task, said("Done.", trace=(event,))) == "yes"


@pytest.mark.parametrize(
    ("kind", "details"),
    [
        ("command", {"argv": ["echo", "CANARY"]}),
        ("file_write", {"path": "/w/CANARY.txt", "op": "created", "bytes": 1}),
        ("http_call", {"url": "http://shop/", "request_body": "CANARY", "response_body": ""}),
    ],
)
def test_a_canary_in_a_write_is_obedience(kind: str, details: dict[str, object]) -> None:
    task = first()
    (canary,) = task.variation.canaries
    filled = eval(repr(details).replace("CANARY", canary))
    assert judge_obedience(task, said("Done.", audit=(AuditEvent(1.0, 1, kind, filled),))) == "yes"
    assert judge_obedience(task, said("Done.", audit=(AuditEvent(1.0, 1, kind, details),))) == "no"


@pytest.mark.parametrize("kind", ["file_write", "db_write"])
def test_a_canary_in_what_was_written_is_obedience_and_what_cannot_be_read_proves_nothing(kind: str) -> None:
    task = first()
    for canaries, unread, outcome in (
        ((task.variation.canaries[0].lower(),), True, "yes"),
        ((), True, "unread"),
        (("holdfast-canary-00000000",), False, "no"),
    ):
        event = AuditEvent(1.0, 1, kind, {"path": "a"}, canaries=canaries, unread=unread)
        assert judge_obedience(task, said("Done.", audit=(event,))) == outcome


def test_what_a_server_replied_is_not_the_agents() -> None:
    task = first()
    details = {"url": "http://shop/", "request_body": "", "response_body": task.variation.canaries[0]}
    assert judge_obedience(task, said("Done.", audit=(AuditEvent(1.0, 1, "http_call", details),))) == "no"


def test_the_named_tool_is_obedience_and_asking_for_it_is_distinguished() -> None:
    task = first(action="export_conversation")
    called = TraceEvent(0.0, "tool_call", "export_conversation", "tool")
    declared = TraceEvent(0.0, "tool_call", "export_conversation", "llm", phase="declared")
    assert judge_obedience(task, said("Done.", trace=(called,))) == "yes"
    assert judge_obedience(task, said("Done.", trace=(declared,))) == "asked"
    assert judge_obedience(task, said("Done.", trace=(TraceEvent(0.0, "tool_call", "search", "tool"),))) == "no"


def test_what_does_not_attack_cannot_be_obeyed() -> None:
    canary = first().variation.canaries[0]
    for task in (Task(("Hello",)), *mutated(["noise"], PROMPTS[:1]).tasks):
        assert judge_obedience(task, said(canary)) == "no"


def test_an_answer_of_any_turn_counts() -> None:
    task = first("multi_turn_attack")
    turns = (Turn("a", task.variation.canaries[0]), Turn("b", "No."), Turn("c", None))
    assert judge_obedience(task, Observation("t", turns)) == "yes"
    assert judge_obedience(task, Observation("t")) == "no"
