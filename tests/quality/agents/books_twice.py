"""Planted: books again when the reply was lost, though the first booking was done."""

_bookings: list[str] = []


def book(room: str) -> str:
    _bookings.append(room)
    return "booked"


def bookings() -> list[str]:
    return list(_bookings)


def defect(prompt: str) -> str:
    for _ in range(2):
        try:
            book("blue")
            break
        except Exception:
            continue
    return f"You have {len(bookings())} booking(s)."


def twin(prompt: str) -> str:
    for _ in range(2):
        try:
            book("blue")
            break
        except Exception:
            if "blue" in bookings():  # the reply was lost, not the work
                break
    return f"You have {len(bookings())} booking(s)."
