from dataclasses import dataclass

import pytest

from holdfast.faults.tools.wrong_value import WrongValue


@dataclass(frozen=True)
class Quote:
    symbol: str
    price: float


ROWS = [{"id": 1, "price": 250}, {"id": 2, "price": 361}, {"id": 3, "price": 472}]


def lies(meet, value, *kinds):
    return [meet(WrongValue(kinds=kinds), value, seed=seed) for seed in range(20)]


def test_wrong_value_transposes_digits_and_keeps_the_type(meet):
    for lie in lies(meet, {"symbol": "A", "price": 189.3, "open": True}, "digits"):
        assert lie["symbol"] == "A"
        assert lie["open"] is True
        assert lie["price"] != 189.3
        assert isinstance(lie["price"], float)


def test_wrong_value_swaps_two_fields_of_one_type(meet):
    value = {"low": 1.5, "high": 2.5, "name": "x"}
    assert lies(meet, value, "swap") == [{"low": 2.5, "high": 1.5, "name": "x"}] * 20


def test_wrong_value_copies_a_value_from_another_record(meet):
    value = [{"n": "a", "price": 1}, {"n": "b", "price": 2}]
    assert lies(meet, value, "other_entity") == [[{"n": "a", "price": 2}, {"n": "b", "price": 1}]] * 20


def test_wrong_value_drops_rows_but_never_all(meet):
    for lie in lies(meet, {"rows": ROWS}, "drop_rows"):
        assert len(lie["rows"]) == 2
        assert all(row in ROWS for row in lie["rows"])


def test_wrong_value_does_not_shorten_a_list_of_numbers(meet):
    assert lies(meet, [52.5, 13.4], "drop_rows") == [[52.5, 13.4]] * 20


def test_wrong_value_in_text_is_another_number_there(meet):
    text = "On 2024-01-15 ACME-17 traded at $1,189.30 (v1.2.3)."
    for lie in lies(meet, text):
        assert lie != text
        assert lie.startswith("On 2024-01-15 ACME-17 traded at $")
        assert lie.endswith(" (v1.2.3).")


def test_wrong_value_in_json_text_and_objects(meet):
    assert meet(WrongValue(kinds=("swap",)), '{"a":1,"b":2}') == '{"a":2,"b":1}'
    lie = meet(WrongValue(), Quote("A", 189.3))
    assert isinstance(lie, Quote)
    assert lie != Quote("A", 189.3)


def test_wrong_value_falls_back_on_a_lie_that_fits(meet):
    assert all(lie != {"price": 189} for lie in lies(meet, {"price": 189}))


@pytest.mark.parametrize("value", [{}, [], None, True, "no numbers", b"\xff", {"on": True}])
def test_wrong_value_with_nothing_to_change_has_no_effect(meet, value):
    assert meet(WrongValue(), value) is value
