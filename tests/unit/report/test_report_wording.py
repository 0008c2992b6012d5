import pytest
from msgspec.structs import replace
from report_sample import sample

from golden_words import Golden
from holdfast.model.codes import STATEFUL, RunWarning
from holdfast.model.run import CellRow, TrialRow
from holdfast.model.score import Cell, Interval, Score
from holdfast.report import wording
from holdfast.report.wording import format_answer, format_count, format_interval, format_warning


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (Interval(25.1, 87.4, "kish", 5), "95 %: 25–87, approximate"),
        (Interval(99.96, 100.0, "bootstrap", 20), "95 %: 99.96–100.00"),  # a narrow one never looks like none
        (Interval(25.1, 87.4, "bootstrap", 8), "95 %: 25–87, approximate: 8 prompts"),
    ],
)
def test_an_interval_has_as_many_digits_as_it_can_bear(made: Interval, shown: str) -> None:
    assert format_interval(made) == shown


def test_the_documented_warning_keeps_its_own_first_word() -> None:
    assert format_warning(RunWarning(STATEFUL, "No reset_endpoint.")) == "Warning: No reset_endpoint."
    assert format_warning(RunWarning("trial", "odd \x07")) == "warning: odd \\x07"


def test_one_of_a_kind_has_no_s() -> None:
    assert (format_count(1, "rule"), format_count(2, "rule"), format_count(0, "rule")) == (
        "1 rule",
        "2 rules",
        "0 rules",
    )


def test_an_empty_answer_is_not_an_ending_of_its_own(golden: Golden) -> None:
    golden(format_answer(TrialRow("1", "q", "", "answered", 1.0, "fail", "r")))
    assert format_answer(TrialRow("1", "q", None, "timeout", 1.0, "fail", "r")) == "(nothing)"


@pytest.mark.parametrize(("replicas", "shown"), [(1, 1), (10, 10), (11, 5), (2500, 12)])
def test_pass_hat_of_many_replicas_is_a_few_numbers(replicas: int, shown: int) -> None:
    score = Score(100.0, True, 0, pass_hat={str(k): 1.0 for k in range(1, replicas + 1)})
    found = list(wording.round_pass_hat(score))
    assert (len(found), found[0], found[-1]) == (shown, "1", str(replicas))


def test_the_trial_shown_is_of_a_prompt_that_decided() -> None:
    held = TrialRow("1", "held", "x", "answered", 1.0, "fail", "r", aside=True)
    bad = TrialRow("2", "bad", "x", "answered", 1.0, "fail", "r")
    cell = Cell("r", "calm", "low", 1.0, "fail")
    assert wording.find_telling(CellRow(cell, (held, bad))) is bad
    assert wording.find_telling(CellRow(cell, (held,))) is held
    assert wording.find_telling(CellRow(cell, ())) is None


@pytest.mark.parametrize(("passes", "advised"), [(0, False), (2, True)])
def test_more_replicas_are_advised_only_where_some_were_decided(passes: int, advised: bool) -> None:
    trial = TrialRow("1", "q", "It was refunded.", "answered", 1.0, "unproven", "not seen", code="claim-unseen")
    cell = Cell("r", "calm", "low", 1.0, "unproven", code="claim-unseen", passes=passes, unproven=3)
    run = replace(sample(), complete=True)
    assert ("replicas" in wording.format_next_step(run, CellRow(cell, (trial,)))) is advised
