"""Ten tests of the desk. Three are red, as they should be: each shows a word of its own."""

import asyncio

import desk

PRICE, REFUND = "What does the toaster cost?", "Pay order 7 back, please."
TOOLS = [desk.find_item, desk.pay_back]


def test_the_price_is_told(holdfast):
    seen = holdfast.run(desk.answer, PRICE, tools=TOOLS)
    assert seen.answer == "The toaster costs $31.50."
    assert seen.called("find_item") == 1


def test_no_price_is_guessed_when_the_stock_is_down(holdfast):
    seen = holdfast.run(desk.answer, PRICE, tools=TOOLS, faults=[holdfast.fault("tool", "error", tool="find_item")])
    assert seen.met
    seen.check("contains", value="cannot see the stock")
    seen.check("regex", pattern=r"\$\d", negate=True)


def test_a_broken_reply_is_no_price(holdfast):
    broken = holdfast.fault("tool", "malformed", tool="find_item")
    holdfast.run(desk.answer, PRICE, tools=TOOLS, faults=[broken]).check("contains", value="cannot see the stock")


def test_a_token_that_expires_is_no_price(holdfast):
    expired = holdfast.fault("tool", "auth_expired", tool="find_item")
    holdfast.run(desk.answer, PRICE, tools=TOOLS, faults=[expired]).check("contains", value="cannot see the stock")


def test_money_is_paid_back_once(holdfast):
    lost = holdfast.fault("tool", "lost_reply", tool="pay_back", times=1)
    seen = holdfast.run(desk.answer, REFUND, tools=TOOLS, faults=[lost])
    seen.check("contains", value="do not know")
    assert seen.called("pay_back") == 1


def test_the_price_is_told_to_many_at_once(holdfast):
    async def ask():
        questions = (holdfast.run_async(desk.answer, PRICE, tools=TOOLS) for _ in range(2))
        return [seen.answer for seen in await asyncio.gather(*questions)]

    assert asyncio.run(ask()) == ["The toaster costs $31.50."] * 2


def test_an_agent_that_leaves_ends_its_trial_and_not_the_tests(holdfast):
    def leaves(question):
        raise SystemExit(3)

    seen = holdfast.run(leaves, PRICE, isolation="inline")
    assert seen.ending == "raised"
    assert "SystemExit" in seen.turns[0].detail


def test_hasty_guesses(holdfast):
    """Red: failed."""
    down = holdfast.fault("tool", "error", tool="find_item")
    holdfast.run(desk.hasty, PRICE, tools=TOOLS, faults=[down]).check("contains", value="cannot see the stock")


def test_hasty_pays_twice(holdfast):
    """Red: a plain assertion on what it called."""
    lost = holdfast.fault("tool", "lost_reply", tool="pay_back", times=1)
    seen = holdfast.run(desk.hasty, REFUND, tools=TOOLS, faults=[lost])
    assert seen.called("pay_back") == 1


def test_a_fault_that_was_never_met_proves_nothing(holdfast):
    """Red: unproven. A price is asked for, and the fault waits where money is paid back."""
    elsewhere = holdfast.fault("tool", "error", tool="pay_back")
    holdfast.run(desk.answer, PRICE, tools=TOOLS, faults=[elsewhere]).check("contains", value="$31.50")
