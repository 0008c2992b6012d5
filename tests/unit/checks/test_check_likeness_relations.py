"""What belongs to what inside a sentence, and facts that look alike."""

import re

import pytest

from holdfast.checks.likeness import likeness

OPPOSITES = [
    ("Your balance is -$50.", "Your balance is $50."),
    ("Your balance is -$1,200.00.", "Your balance is $1,200.00."),
    ("Your balance is −€50.", "Your balance is €50."),
    ("Your balance is -£50.", "Your balance is £50."),
    ("Your balance is -50 €.", "Your balance is 50 €."),
    ("Your balance is $-50.", "Your balance is $50."),
    ("Your balance is - $50.", "Your balance is $50."),
    ("Your balance is minus $50.", "Your balance is $50."),
    ("Your balance is ($1,200.00).", "Your balance is $1,200.00."),
    ("Balance: (50.00€)", "Balance: 50.00€"),
    ("($50)", "$50"),
    ("Your refund was nearly approved.", "Your refund was approved."),
    ("Your refund was almost approved.", "Your refund was approved."),
    ("Your refund was barely approved.", "Your refund was approved."),
    ("Was your refund approved?", "Your refund was approved."),
    ("Their refund was approved.", "Your refund was approved."),
    ("His refund was approved.", "Your refund was approved."),
    ("Order 1000000001", "Order 1000000002"),
    ("Transfer to 1234567890123456", "Transfer to 1234567890123457"),
    ("It costs 12345678901.01 euros.", "It costs 12345678901.02 euros."),
    ("The sum is 0.12345678901.", "The sum is 0.12345678902."),
    ("Delete the staging database, keep production.", "Delete production, keep the staging database."),
    ("Keep the red wire, cut the blue wire.", "Keep the blue wire, cut the red wire."),
    ("Cut the red wire and keep the blue wire.", "Cut the blue wire and keep the red wire."),
    ("The kettle costs $5 and the pan $7.", "The kettle costs $7 and the pan $5."),
    ("The kettle costs $5, the pan $7.", "The kettle costs $7, the pan $5."),
    ("Ann owes 5 and Bob owes 7.", "Ann owes 7 and Bob owes 5."),
    ("Ann owes 5 and Bob owes 7.", "Bob owes 5 and Ann owes 7."),
    ("Gate A closes at 10:00, gate B at 11:00.", "Gate A closes at 11:00, gate B at 10:00."),
    ("Gate A closes at 10:00, gate B at 11:00.", "Gate B closes at 10:00, gate A at 11:00."),
    (
        "The refund of order 17 was sent and order 18 was cancelled.",
        "The refund of order 18 was sent and order 17 was cancelled.",
    ),
    ("The first option", "The second option"),
    ("Take the third exit.", "Take the second exit."),
    ("He finished second.", "He finished third."),
    ("Open 9-5", "Open 5-9"),
    ("Pages 10-20 are missing.", "Pages 20-10 are missing."),
    ("a > b", "a < b"),
    ("a >= b", "a <= b"),
    ("x < 3", "x <= 3"),
    ("x = 3", "x != 3"),
    ("x == 3", "x > 3"),
    ("x > y", "y > x"),
    ("It runs 10:00-11:00.", "It runs 11:00-10:00."),
    ("I was first in line.", "I was second in line."),
    ("Version 1.2.10 is out.", "Version 12.1.0 is out."),
    ("The server is 10.0.11.2.", "The server is 10.0.1.12."),
    ("Ann sold 5, Ben bought 7.", "Ben sold 7, Ann bought 5."),
    ("Keep the red wire, cut the blue wire.", "Cut the red wire, keep the blue wire."),
    (
        "The refund of order 17 was sent and order 18 was cancelled.",
        "The refund of order 17 was cancelled and order 18 was sent.",
    ),
    ("1:2", "2:1"),
    ("Mix it 1:2 with water.", "Mix it 2:1 with water."),
    ("Section 3.10", "Section 3.1"),
    ("Version 2.10 is out.", "Version 2.1 is out."),
    ("Das Brot kostet 3 Euro und der Kuchen 5 Euro.", "Das Brot kostet 5 Euro und der Kuchen 3 Euro."),
    ("Yes.", "No."),
    ("Yes", "No, it is not."),
    ("quarter to one", "quarter past one"),
]

SAME = [
    ("Your balance is -$50.", "Your balance is minus $50."),
    ("Your balance is -$50.", "Your balance is ($50)."),
    ("Your balance is -$50.", "Your balance is $-50."),
    ("The fee ($50) is due.", "The fee of $50 is due."),
    ("It costs $5-$10.", "It costs $5 to $10."),
    ("- $50 for the kettle\n- $7 for the pan", "$50 for the kettle, $7 for the pan"),
    ("The price is nearly 50 euros.", "The price is about 50 euros."),
    ("Customers can cancel their order online.", "You can cancel your order online."),
    ("Order 1000000001", "The order 1,000,000,001"),
    ("It takes 1.5 hours.", "It takes 90 minutes."),
    ("It costs $4.50.", "It costs 4.5 dollars."),
    ("A third of a litre", "A third of a litre."),
    ("Ann owes 5 and Bob owes 7.", "Bob owes 7 and Ann owes 5."),
    ("Delete the staging database, keep production.", "Keep production, delete the staging database."),
    ("Keep the red wire, cut the blue wire.", "Cut the blue wire, keep the red wire."),
    ("The kettle costs $5 and the pan $7.", "The pan costs $7 and the kettle $5."),
    ("Gate A closes at 10:00, gate B at 11:00.", "Gate B closes at 11:00, gate A at 10:00."),
    (
        "The refund of order 17 was sent and order 18 was cancelled.",
        "Order 18 was cancelled and the refund of order 17 was sent.",
    ),
    ("He came second.", "He came in second."),
    ("The first option", "The 1st option"),
    ("Open 9-5", "Open 9 - 5"),
    ("Yes", "Yes."),
    ("Yes.", "yes!"),
    ("Yes.", "Yes, it is."),
    ("No.", "no"),
    ("Der Preis beträgt 10 Euro.", "10 Euro beträgt der Preis."),
    ("24,90 € kostet der Wasserkocher.", "Der Wasserkocher kostet 24,90 €."),
    ("Leider kann ich das nicht tun.", "Das kann ich leider nicht tun."),
    ("It starts at quarter to one.", "It starts at 12:45."),
    ("Section 3.10", "section 3.10"),
]


@pytest.mark.parametrize(("one", "other"), OPPOSITES)
def test_what_belongs_to_something_else_does_not_pass(one, other):
    for a, b in ((one, other), (other, one)):
        found = likeness(a, b, "lexical")
        assert found.score < 0.75
        assert found.conflicts


@pytest.mark.parametrize(("one", "other"), SAME)
def test_whole_clauses_may_change_their_order(one, other):
    for a, b in ((one, other), (other, one)):
        found = likeness(a, b, "lexical")
        assert found.score >= 0.75, found


@pytest.mark.parametrize("run", ["a.", "-", "(", "@", " ", "\U0001f600", "一", "a--"])
def test_runs_of_one_sign_are_read_once(run):
    """Nothing is measured: a pattern that tries every beginning would take minutes here."""
    assert likeness(run * 20_000, "Something else", "lexical").score == 0


def test_a_low_score_always_has_a_reason():
    found = likeness("The weather is good in the southern hills", "My boat sails quickly northwards", "lexical")
    assert found.score < 0.75
    assert found.conflicts[-1] == "method: model judges freer wording"
    assert [reason.split(":")[0] for reason in found.conflicts[:2]] == ["missing", "added"]


def test_reasons_do_not_tear_chinese_apart():
    found = likeness("今天天气很好。", "今天天气很好。我们的船已经沉没在海里。", "lexical")
    assert found.conflicts
    assert not [reason for reason in found.conflicts if re.search(r"[\u4e00-\u9fff] [\u4e00-\u9fff]", reason)]


def test_long_answers_are_not_kept_in_memory():
    from holdfast.checks import likeness as module

    text = "A long answer. " * 1000
    likeness(text, text + "More.", "lexical")
    kept = max(len(str(entry)) for entry in module._known.items())
    assert kept < 2000
