"""The codec round-trips: whatever crosses a process border or lies on disk comes back as it was."""

from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Meta

from holdfast.agents.python.host_protocol import TrialRequest
from holdfast.model.codec import create_decoder, encode, encode_canonical, make_encodable, make_storable
from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.model.scenario import Injection, Position, Scenario, Schedule
from holdfast.model.score import Cell, Interval, Score
from holdfast.model.spec import AgentSpec, Aggregation, Invariant, Scoring, ToolRef
from holdfast.model.task import Task
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.model.world import Evidence
from holdfast.store.rundir import Manifest, RunEnd

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
whole = st.integers(min_value=-(2**53), max_value=2**53)
real = st.floats(allow_nan=False, allow_infinity=False)
plain: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | whole | real | text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
    max_leaves=8,
)


@cache  # made once a type: to make them is slower than to draw from them
def of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type, told from its annotation."""
    simple = {str: text, int: whole, float: real, bool: st.booleans(), type(None): st.none(), Any: plain}
    if kind in simple:
        return simple[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is Annotated:
        return within(inner[0], inner[1])
    if origin in (Union, UnionType):
        return st.one_of(*map(of, inner))
    if origin is dict:
        return st.dictionaries(of(inner[0]), of(inner[1]), max_size=2)
    if origin is tuple and inner[-1] is Ellipsis:
        return st.lists(of(inner[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(of, inner))
    return st.deferred(
        lambda: st.builds(kind, **{n: fields(kind, t) for n, t in get_type_hints(kind, include_extras=True).items()})
    )


def within(kind: Any, limits: Meta) -> st.SearchStrategy[Any]:
    """Any value of a type within the limits of its annotation."""
    if kind is int:
        return st.integers(limits.ge if limits.ge is not None else -(2**53), limits.le or 2**53)
    if kind is float and (limits.ge, limits.gt) != (None, None):
        return st.floats(limits.ge or 0, limits.le, exclude_min=limits.gt is not None, allow_infinity=False)
    return of(kind).filter(len) if limits.min_length else of(kind)


def fields(kind: Any, of_field: Any) -> st.SearchStrategy[Any]:
    """Any value of a field; a type that holds values of itself holds none, so that examples stay small."""
    return st.just(()) if of_field == tuple[kind, ...] else of(of_field)


NOUNS = [
    AgentSpec, Aggregation, Cell, RunEnd, FaultMet, Injection, Interval, Invariant, Manifest, Observation, Position,
    TrialRequest, Scenario, Schedule, Score, Scoring, Task, ToolRef, Trial, Turn, Verdict,
]  # fmt: skip


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_noun_comes_back_as_it_was(noun: type, data: st.DataObject) -> None:
    value = data.draw(of(noun))
    assert create_decoder(noun).decode(encode(value)) == value


@given(plain)
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: Any) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(inner) for key, inner in reversed(list(value.items()))}
        return [turned(inner) for inner in value] if isinstance(value, list) else value

    assert encode_canonical(turned(value)) == encode_canonical(value)


@given(st.text())
def test_any_text_can_be_made_to_be_carried(value: str) -> None:
    carried = make_encodable(value)
    assert create_decoder(str).decode(encode(carried)) == carried
    assert carried == value or any("\ud800" <= c <= "\udfff" for c in value)


@given(st.text(), st.text())
def test_halves_of_one_character_are_joined_and_each_other_half_is_one_sign(before: str, after: str) -> None:
    assert make_encodable("\ud83d\ude00") == "\U0001f600"
    found = make_encodable(f"{before} \ude00\ud83d {after}")
    assert found == f"{make_encodable(before)} \ufffd\ufffd {make_encodable(after)}"


any_text = st.text(st.characters(categories=["Cs", "L", "Cc"]), max_size=6)


@given(any_text, st.dictionaries(any_text, any_text, max_size=3))
def test_any_struct_can_be_made_to_be_carried(said: str, beside: dict[str, str]) -> None:
    event = TraceEvent(0.0, "tool_call", tool=said, canaries=(said,))
    seen = Observation("a", turns=(Turn(said, said),), calls={said: 1}, trace=(event,),
                       evidence={said: Evidence([beside, said])})  # fmt: skip
    found = make_storable(seen)
    assert create_decoder(Observation).decode(encode(found)) == found
    assert (found is seen) == (found == seen)
    assert found.turns[0].text == make_encodable(said)
