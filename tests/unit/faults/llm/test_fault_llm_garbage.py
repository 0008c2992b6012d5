import pytest

from holdfast.faults.llm.garbage import Garbage


@pytest.mark.parametrize(("length", "expected"), [(3, 40), (100, 100), (9_000, 2_000)])
def test_garbage_is_about_as_long_as_the_answer(meet, length, expected):
    garbage = meet(Garbage(), "word " * (length // 5) + "x" * (length % 5))
    assert len(garbage) == expected
    assert "word" not in garbage
    garbage.encode()


def test_garbage_takes_the_place_of_the_text(meet):
    received = meet(Garbage(), {"content": "hi", "id": 1})
    assert received["id"] == 1
    assert len(received["content"]) == 40


def test_garbage_depends_only_on_the_seed(meet):
    assert meet(Garbage(), "hi", seed=1) == meet(Garbage(), "hi", seed=1)
    assert meet(Garbage(), "hi", seed=1) != meet(Garbage(), "hi", seed=2)
