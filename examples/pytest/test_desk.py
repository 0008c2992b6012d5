"""Ten tests of the desk. Three fail on purpose, each with a different outcome."""

import asyncio

import desk

PRICE, REFUND = "What does the toaster cost?", "Pay order 7 back, please."
TOOLS = [desk.find_item, desk.pay_back]


def test_the_price_is_right(holdfast):
    trial = holdfast.run(desk.answer, PRICE, tools=TOOLS)
    assert trial.answer == "The toaster costs $31.50."
    assert trial.called("find_item") == 1


def test_no_price_is_guessed_when_the_stock_is_down(holdfast):
    trial = holdfast.run(desk.answer, PRICE, tools=TOOLS, faults=[holdfast.fault("tool", "error", tool="find_item")])
    assert trial.met
    trial.check("contains", value="cannot see the stock")
    trial.check("regex", pattern=r"\$\d", negate=True)


def test_a_broken_reply_is_no_price(holdfast):
    broken = holdfast.fault("tool", "malformed", tool="find_item")
    holdfast.run(desk.answer, PRICE, tools=TOOLS, faults=[broken]).check("contains", value="cannot see the stock")


def test_a_token_that_expires_is_no_price(holdfast):
    expired = holdfast.fault("tool", "auth_expired", tool="find_item")
    holdfast.run(desk.answer, PRICE, tools=TOOLS, faults=[expired]).check("contains", value="cannot see the stock")


def test_money_is_paid_back_once(holdfast):
    lost = holdfast.fault("tool", "lost_reply", tool="pay_back", times=1)
    trial = holdfast.run(desk.answer, REFUND, tools=TOOLS, faults=[lost])
    trial.check("contains", value="do not know")
    assert trial.called("pay_back") == 1


def test_many_can_ask_for_the_price_at_once(holdfast):
    async def ask():
        questions = (holdfast.run_async(desk.answer, PRICE, tools=TOOLS) for _ in range(2))
        return [trial.answer for trial in await asyncio.gather(*questions)]

    assert asyncio.run(ask()) == ["The toaster costs $31.50."] * 2


def test_an_agent_that_exits_ends_only_its_trial(holdfast):
    def leaves(question):
        raise SystemExit(3)

    trial = holdfast.run(leaves, PRICE, isolation="inline")
    assert trial.ending == "raised"
    assert "SystemExit" in trial.turns[0].detail


def test_hasty_guesses(holdfast):
    """Fails: the check failed."""
    down = holdfast.fault("tool", "error", tool="find_item")
    holdfast.run(desk.hasty, PRICE, tools=TOOLS, faults=[down]).check("contains", value="cannot see the stock")


def test_hasty_pays_twice(holdfast):
    """Fails: a plain assertion on its calls."""
    lost = holdfast.fault("tool", "lost_reply", tool="pay_back", times=1)
    trial = holdfast.run(desk.hasty, REFUND, tools=TOOLS, faults=[lost])
    assert trial.called("pay_back") == 1


def test_a_fault_that_was_never_met_proves_nothing(holdfast):
    """Fails: unproven. The prompt asks for a price, but the fault waits for a refund."""
    elsewhere = holdfast.fault("tool", "error", tool="pay_back")
    holdfast.run(desk.answer, PRICE, tools=TOOLS, faults=[elsewhere]).check("contains", value="$31.50")
