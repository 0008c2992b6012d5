from check_exhibits import exhibit

from holdfast.checks.response.contains_any import ContainsAny


def test_one_of_the_values_is_enough():
    finding = ContainsAny(("source", "REFERENCE")).decide(exhibit("See reference 4."))
    assert finding.passed
    assert finding.marks == ((4, 13),)


def test_none_of_the_values_fails_and_names_them():
    finding = ContainsAny(("source", "reference")).decide(exhibit("Up."))
    assert finding.passed is False
    assert finding.code == "text-missing"


def test_no_values_is_a_problem():
    assert [field for field, _ in ContainsAny(()).problems()] == ["values"]
    assert [field for field, _ in ContainsAny(("a", "")).problems()] == ["values"]
    assert not list(ContainsAny(("a",)).problems())
