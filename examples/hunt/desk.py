"""A hotel desk: charges the card, reserves the room, and returns the money if there is no room. It has two bugs."""

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
        return "Sorry, your card could not be charged. Nothing was booked."
    try:
        booking = reserve(room, GUEST)
    except Exception:
        try:
            refund(receipt)
        except Exception:
            print("refund failed")
        return "Sorry, the room is gone. Your money was returned."
    return f"Your room is booked: {booking}."


def charge_card():
    """Tries twice, because the bank is sometimes down."""
    try:
        return charge(GUEST, PRICE)
    except Exception:
        return charge(GUEST, PRICE)
