"""The same desk, fixed: it gives no amount without today's rate, and handles a reply without a rate."""


def exchange_rate(pair):
    """Returns today's rate, as a bank's service would."""
    return {"pair": pair, "rate": 1.0812, "as_of": "2026-11-10"}


def answer(question):
    """Converts 100 euros to dollars."""
    try:
        found = exchange_rate("EURUSD")
        rate, day = float(found["rate"]), found["as_of"]
    except Exception:
        return "I cannot see today's rate. Please ask again in a few minutes."
    return f"100 euros are {100 * rate:.2f} dollars (rate of {day})."
