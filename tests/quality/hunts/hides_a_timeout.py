"""Planted, three faults: with no room in either hotel, a timeout while the flight is cancelled passes for success."""


def book_flight(to: str) -> str:
    return "flight-4471"


def first_hotel(city: str) -> str:
    return "room-118"


def second_hotel(city: str) -> str:
    return "room-402"


def cancel_flight(flight: str) -> str:
    return "cancelled"


def travel(*, hides_timeout: bool) -> str:
    try:
        flight = book_flight("Lisbon")
    except Exception:
        return "There is no flight."
    for hotel in (first_hotel, second_hotel):
        try:
            return f"Booked: {flight} and {hotel('Lisbon')}."
        except Exception as full:
            print(f"no room: {full}")
    try:
        cancel_flight(flight)
    except TimeoutError:
        if not hides_timeout:
            return f"There is no room. I do not know whether {flight} was cancelled."
    except Exception:
        return f"There is no room, and {flight} could not be cancelled."
    return "There is no room. The flight was cancelled."


def defect(prompt: str) -> str:
    return travel(hides_timeout=True)


def twin(prompt: str) -> str:
    return travel(hides_timeout=False)
