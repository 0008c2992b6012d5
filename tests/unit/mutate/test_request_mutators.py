from __future__ import annotations

import re
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.agents.http.changed_request import FORMS
from holdfast.model.codec import encode_canonical
from holdfast.model.task import Task, Variation
from holdfast.mutate.changed_requests import RequestMutator
from holdfast.mutate.expand import REQUEST_MUTATORS
from holdfast.mutate.mutator import MadeMutation

KINDS = list(REQUEST_MUTATORS)


def made(kind: str, n: int, prompt: str = "Where is my parcel?", seed: int = 7) -> MadeMutation:
    found = REQUEST_MUTATORS[kind].mutate(prompt, n, Random(seed))
    assert found is not None
    return found


def variants(kind: str) -> list[str]:
    mutator = REQUEST_MUTATORS[kind]
    assert isinstance(mutator, RequestMutator)
    return list(mutator.variants)


def test_the_nine_documented_types_are_there() -> None:
    assert KINDS == [
        "http_header_injection",
        "payload_size_attack",
        "content_type_confusion",
        "query_parameter_poisoning",
        "request_method_attack",
        "protocol_level_attack",
        "resource_exhaustion",
        "concurrent_request_pattern",
        "timeout_manipulation",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_each_variant_of_a_type_comes_once_before_one_comes_again(kind: str) -> None:
    names = variants(kind)
    assert len(names) >= 5
    assert sorted(made(kind, n).name for n in range(len(names))) == sorted(names)
    again = made(kind, len(names))
    assert again.name == made(kind, 0).name
    assert again.request is not None
    assert again.request.repeat == 1
    assert encode_canonical(again) != encode_canonical(made(kind, 0))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(prompt=st.text(), n=st.integers(0, 60), seed=st.integers(0, 2**32))
def test_prompt_number_and_luck_decide_all_and_the_prompt_stays(kind: str, prompt: str, n: int, seed: int) -> None:
    one, two = made(kind, n, prompt, seed), made(kind, n, prompt, seed)
    assert one == two
    assert one.turns == (prompt,)
    assert one.request is not None
    assert (one.request.kind, one.request.variant) == (kind, one.name)


@pytest.mark.parametrize("kind", KINDS)
def test_two_variants_are_never_the_same_change(kind: str) -> None:
    changes = [made(kind, n).request for n in range(len(variants(kind)))]
    assert len({encode_canonical(replace(c, variant="")) for c in changes if c}) == len(changes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_canary_stands_in_the_change_and_only_where_it_is_named(kind: str) -> None:
    for n in range(len(variants(kind))):
        one = made(kind, n)
        text = encode_canonical(one.request).decode()
        assert all(word in text for word in one.canaries)
        assert ("HOLDFAST-CANARY" in text) == bool(one.canaries)


@pytest.mark.parametrize("kind", KINDS)
@given(n=st.integers(0, 40), seed=st.integers(0, 2**32))
def test_every_change_is_bounded(kind: str, n: int, seed: int) -> None:
    change = made(kind, n, seed=seed).request
    assert change is not None
    assert 1 <= change.copies <= 8
    assert change.abandoned < change.copies
    assert change.slow_ms <= 2_000
    assert change.header_size <= 100_000
    assert not change.body or change.body == "none" or change.body in FORMS
    assert len(encode_canonical(change)) < 10_000


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_with_the_change_is_the_same_once_stored(kind: str) -> None:
    for n in range(len(variants(kind))):
        one = made(kind, n)
        task = Task(one.turns, "mutation", Variation(kind, "p", one.name, attack=True, request=one.request))
        assert msgspec.json.decode(msgspec.json.encode(task), type=Task) == task


def test_prompts_begin_with_different_variants() -> None:
    first = {made("http_header_injection", 0, f"prompt {n}").name for n in range(50)}
    assert len(first) > 5


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_names_every_variant_and_what_it_plants_or_breaks(kind: str) -> None:
    page = (Path(__file__).parents[3] / "docs/mutation.md").read_text()
    row = page.split(f"\n| `{kind}`")[1].split("\n")[0]
    listed = " ".join(re.findall(r"\(([^()]*)\)", row))
    names = dict(re.findall(r"`(\w+)`( \\\*| †|)", listed))
    assert set(names) == set(variants(kind))
    for n in range(len(variants(kind))):
        one = made(kind, n)
        assert one.request is not None
        assert names[one.name] == (r" \*" if one.canaries else " †" if one.request.malformed else "")
