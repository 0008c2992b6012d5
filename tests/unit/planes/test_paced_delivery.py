from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.delivery import Delivery, Slices
from holdfast.planes.paced_delivery import NOTICEABLE_MS, PacedDelivery, drop_ineffective

SLICES = st.builds(Slices, st.integers(1, 50), st.integers(0, 60), st.just(1.0), st.integers(0, 9))
DELIVERIES = st.builds(
    Delivery,
    rate=st.none() | st.floats(1_000, 1_000_000),
    slices=st.none() | SLICES,
    limit=st.none() | st.integers(0, 500),
)


@given(DELIVERIES, st.lists(st.binary(max_size=200), max_size=5))
def test_bytes_are_sent_in_order_up_to_the_limit(delivery, chunks):
    pacing = PacedDelivery(delivery)
    sent = b"".join(piece for chunk in chunks for _, piece in pacing.split_pieces(chunk))
    everything = b"".join(chunks)
    assert sent == (everything if delivery.limit is None else everything[: delivery.limit])
    assert pacing.is_cut_off == (delivery.limit is not None and len(everything) >= delivery.limit)


def test_a_rate_is_kept():
    waits = [wait for wait, _ in PacedDelivery(Delivery(rate=10_000)).split_pieces(bytes(5_000))]
    assert abs(sum(waits) - 500) < 1
    assert len(waits) == 10


def test_slices_vary_by_their_seed_and_wait_between():
    def sizes(seed):
        return [
            len(piece) for _, piece in PacedDelivery(Delivery(slices=Slices(10, 5, 3, seed))).split_pieces(bytes(1_000))
        ]

    assert sizes(1) == sizes(1) != sizes(2)
    assert all(5 <= size <= 15 for size in sizes(1)[:-1])
    first, *others = [wait for wait, _ in PacedDelivery(Delivery(slices=Slices(10, 5, 3, 1))).split_pieces(bytes(100))]
    assert first == 0
    assert set(others) == {3}


@given(DELIVERIES, st.binary(max_size=600))
def test_parts_without_effect_on_a_body_are_dropped(delivery, body):
    left, idle = drop_ineffective(delivery, len(body))
    before, after = list(PacedDelivery(delivery).split_pieces(body)), list(PacedDelivery(left).split_pieces(body))
    assert b"".join(piece for _, piece in before) == b"".join(piece for _, piece in after)
    assert abs(sum(wait for wait, _ in before) - sum(wait for wait, _ in after)) < NOTICEABLE_MS
    if "slices" not in idle and left.slices is not None:
        assert len(after) > 1
    if left.limit is not None:
        assert left.limit < len(body)
