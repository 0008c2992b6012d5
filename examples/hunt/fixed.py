"""The same desk without the bugs: an idempotency key for the charge, and a refund is claimed only if it was made."""

from hotel import charge, find_room, refund, reserve

GUEST, PRICE = "G-2207", 142.50


def answer(question):
    """Books a room in Lisbon."""
    try:
        room = find_room("Lisbon")
    except Exception:
        return "Sorry, I cannot see the free rooms. Nothing was booked."
    try:
        receipt = charge_card()
    except Exception:
        return "Sorry, I do not know whether your card was charged. Nothing was booked."
    try:
        booking = reserve(room, GUEST)
    except Exception:
        try:
            refund(receipt)
        except Exception:
            return f"Sorry, the room is gone, and I could not return your money: please call us about {receipt}."
        return "Sorry, the room is gone. Your money was returned."
    return f"Your room is booked: {booking}."


def charge_card():
    """Tries twice, because the bank is sometimes down."""
    key = f"{GUEST}-lisbon"
    try:
        return charge(GUEST, PRICE, idempotency_key=key)
    except Exception:
        return charge(GUEST, PRICE, idempotency_key=key)
