"""A currency desk with a bug: it answers from memory when its source is down."""

LAST_KNOWN = 1.09


def exchange_rate(pair):
    """Returns today's rate, as a bank's service would."""
    return {"pair": pair, "rate": 1.0812, "as_of": "2026-11-10"}


def answer(question):
    """Converts 100 euros to dollars."""
    try:
        found = exchange_rate("EURUSD")
    except Exception:
        return f"100 euros are about {100 * LAST_KNOWN:.2f} dollars."
    return f"100 euros are {100 * found['rate']:.2f} dollars (rate of {found['as_of']})."
