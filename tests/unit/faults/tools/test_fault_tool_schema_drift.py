from collections import namedtuple
from dataclasses import dataclass

import pytest

from holdfast.faults.tools.schema_drift import SchemaDrift

Pair = namedtuple("Pair", "price name")


@dataclass
class Quote:
    price: float
    name: str


ROWS = {"results": [{"price": 1, "name": "a"}, {"price": 2, "name": "b"}], "total": 2}


def test_schema_drift_renames_a_field_in_every_row(meet):
    assert meet(SchemaDrift(rename={"price": "cost"}), ROWS) == {
        "results": [{"cost": 1, "name": "a"}, {"cost": 2, "name": "b"}],
        "total": 2,
    }


def test_schema_drift_keeps_the_order_of_fields(meet):
    assert list(meet(SchemaDrift(rename={"a": "z"}), {"a": 1, "b": 2})) == ["z", "b"]


def test_schema_drift_drops_and_retypes(meet):
    drift = SchemaDrift(drop=("total",), retype=("price", "results"))
    assert meet(drift, ROWS) == {"results": {"price": "1", "name": "a"}}


@pytest.mark.parametrize(
    ("value", "other"),
    [(1.5, "1.5"), ("12", 12.0), ("abc", ["abc"]), (True, "true"), (None, ""), ([], None), ({"a": 1}, '{"a": 1}')],
)
def test_schema_drift_retypes_any_value(meet, value, other):
    assert meet(SchemaDrift(retype=("f",)), {"f": value}) == {"f": other}


@pytest.mark.parametrize("drift", [SchemaDrift(), SchemaDrift(rename=True)])
def test_schema_drift_renames_a_random_field_by_default(meet, drift):
    seen = {frozenset(meet(drift, {"a": 1, "b": 2}, seed=seed)) for seed in range(20)}
    assert seen == {frozenset({"a_value", "b"}), frozenset({"a", "b_value"})}


def test_schema_drift_renames_nothing_by_chance_next_to_a_drop(meet):
    assert meet(SchemaDrift(drop=("a",)), {"a": 1, "b": 2}) == {"b": 2}


def test_schema_drift_works_inside_json_text(meet):
    assert meet(SchemaDrift(rename={"a": "b"}), '[{"a":1},{"a":2}]') == '[{"b":1},{"b":2}]'


@pytest.mark.parametrize("value", [Quote(1.5, "x"), Pair(1.5, "x")])
def test_schema_drift_of_an_object_is_an_object_without_the_old_name(meet, value):
    received = meet(SchemaDrift(rename={"price": "cost"}), value)
    assert (received.cost, received.name) == (1.5, "x")
    assert not hasattr(received, "price")
    assert received != value


def test_schema_drift_retypes_a_field_of_an_object_in_its_class(meet):
    assert meet(SchemaDrift(retype=("price",)), Quote(1.5, "x")) == Quote("1.5", "x")


@pytest.mark.parametrize("value", ["text", 5, None, [], {}, {"other": 1}, '{"other": 1}', b"\xff"])
def test_schema_drift_without_the_field_has_no_effect(meet, value):
    assert meet(SchemaDrift(rename={"price": "cost"}, drop=("x",)), value) is value


def test_schema_drift_refuses_what_contradicts_itself():
    bad = SchemaDrift(rename={"a": "b", "c": ""}, drop=("a",))
    assert [field for field, _ in bad.problems()] == ["drop", "rename"]
    assert list(SchemaDrift(rename={"a": "b"}, drop=("c",)).problems()) == []


def test_schema_drift_ends_on_a_value_that_holds_itself(meet):
    knot = {"a": 1}
    knot["children"] = [{"parent": knot} for _ in range(50)]
    assert meet(SchemaDrift(drop=("a",)), knot)["children"][0]["parent"] is knot
