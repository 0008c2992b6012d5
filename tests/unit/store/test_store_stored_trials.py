"""Ids in little memory are found like in a dict."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.store.stored_trials import IdTable

ids = st.lists(st.sampled_from(["%012x" % (n * 0x9E3779B97F4A % 2**48) for n in range(40)]), max_size=80)


@given(ids, ids)
def test_an_id_has_its_last_number_in_whatever_order_it_is_asked_for(known, asked):
    table = IdTable(known)
    numbers = {id: number for number, id in enumerate(known)}
    assert [table.find(id) for id in (*asked, *known)] == [numbers.get(id) for id in (*asked, *known)]
    assert (len(table), table.distinct) == (len(known), len(numbers))


def test_what_is_no_id_is_never_found():
    odd = ["", "xyz", "0123456789AB", "0123456789abc", "0x0123456789", " 123456789ab", "1_23456789ab"]
    table = IdTable([*odd, "0123456789ab"])
    assert [table.find(id) for id in odd] == [None] * len(odd)
    assert table.find("0123456789ab") == len(odd)
