"""The hotel's systems, as the desk calls them."""


def find_room(city):
    """The number of a free room."""
    return "room-118"


def charge(guest, amount, idempotency_key=None):
    """Charges the guest's card; the receipt. With the same key it charges once, however often it is called."""
    return "receipt-90412"


def reserve(room, guest):
    """Reserves the room; the booking."""
    return "booking-7731"


def refund(receipt):
    """Returns what was charged."""
    return "refund-55020"
