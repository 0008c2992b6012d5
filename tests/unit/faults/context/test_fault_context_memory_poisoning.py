import pytest

from holdfast.faults.context.memory_poisoning import MemoryPoisoning
from holdfast.model.canary import find_canaries


@pytest.mark.parametrize(
    ("strategy", "expected"), [("prepend", "EVIL\n\nask"), ("append", "ask\n\nEVIL"), ("replace", "EVIL")]
)
def test_memory_poisoning_follows_its_strategy(context, strategy, expected):
    assert MemoryPoisoning(payload="EVIL", strategy=strategy).rewrite("ask", context()) == expected


def test_memory_poisoning_prepends_a_shipped_memory_by_default(context):
    text = MemoryPoisoning().rewrite("ask", context())
    assert text.endswith("\n\nask")
    assert len(find_canaries(text)) == 1
