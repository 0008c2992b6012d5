import pytest

from holdfast.faults.tools.flapping import Flapping
from holdfast.protocols.fault import Failed


def course(meet, fault, calls=6):
    """What happens call by call: F or O."""
    said = ""
    for n in range(1, calls + 1):
        try:
            said += "O" if meet(fault, "real", n=n) == "real" else "?"
        except Failed as failed:
            said += "F" if failed.status == fault.error_code else "?"
    return said


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (("fail", "ok"), "FOFOFO"),
        (["ok", "FAIL"], "OFOFOF"),
        ("FFO", "FFOFFO"),
        ("fail, fail, ok", "FFOFFO"),
        ("o f", "OFOFOF"),
    ],
)
def test_flapping_follows_its_pattern(meet, pattern, expected):
    assert list(Flapping(pattern=pattern).problems()) == []
    assert course(meet, Flapping(pattern=pattern)) == expected


def test_flapping_fails_first_and_then_by_turns_by_default(meet):
    assert course(meet, Flapping()) == "FOFOFO"


@pytest.mark.parametrize("pattern", ["", "OOO", "fail, maybe", ("ok",), ()])
def test_flapping_refuses_a_pattern_that_is_strange_or_never_fails(pattern):
    assert [field for field, _ in Flapping(pattern=pattern).problems()] == ["pattern"]
