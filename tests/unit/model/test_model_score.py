"""What the calls of a run used."""

import pytest

from holdfast.model.score import Spent


@pytest.mark.parametrize(
    ("spent", "only"),
    [
        (Spent(3, scripted=3), True),
        (Spent(3, retries=1, scripted=4), True),
        (Spent(3), False),
        (Spent(), False),
        (Spent(3, input_tokens=5, scripted=2), False),
        (Spent(3, output_tokens=5, unpriced=("m",), scripted=2), False),
        (Spent(3, cost_usd=0.0, scripted=2), False),
    ],
)
def test_a_run_is_scripted_if_no_provider_was_asked(spent: Spent, only: bool) -> None:
    assert spent.is_only_scripted is only
