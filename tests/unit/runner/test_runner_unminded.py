from holdfast.runner.unminded import unminded


def test_endings_that_no_rule_minded_are_counted() -> None:
    assert [*unminded({"timeout": 3, "crashed": 1, "no_answer": 5}, 12)] == [
        "3 of 12 trials ended in a timeout and failed no rule: they were judged on what there was "
        "(a `completes` rule would fail)",
        "1 of 12 trials ended in a crash and failed no rule: it was judged on what there was "
        "(a `completes` rule would fail)",
    ]
    assert [*unminded({}, 12)] == []
