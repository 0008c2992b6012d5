"""The same desk, fixed: it gives no amount without a rate of today, and handles a reply without a rate."""


def exchange_rate(pair):
    """Today's rate, as a bank's service would give it."""
    return {"pair": pair, "rate": 1.0812, "as_of": "2026-11-10"}


def answer(question):
    """What 100 euros are in dollars."""
    try:
        found = exchange_rate("EURUSD")
        rate, day = float(found["rate"]), found["as_of"]
    except Exception:
        return "I cannot see today's rate. Please ask again in a few minutes."
    return f"100 euros are {100 * rate:.2f} dollars (rate of {day})."
