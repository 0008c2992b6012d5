import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.faults.texts import rename_field


@pytest.mark.parametrize(
    ("old", "new"),
    [("total_price", "totalPrice"), ("totalPrice", "total_price"), ("price", "price_value"), ("USD", "USD_value")],
)
def test_a_field_gets_the_name_of_another_style(old, new):
    assert rename_field(old) == new


@given(st.text(min_size=1), st.lists(st.text()))
def test_a_new_name_is_never_the_old_one_nor_taken(name, taken):
    assert rename_field(name, taken) not in {name, *taken}
