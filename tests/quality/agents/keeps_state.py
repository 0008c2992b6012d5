"""Planted: remembers earlier conversations, and nothing makes it forget. The twin is the same code with a reset."""

_told: list[str] = []


def weather(city: str) -> str:
    return "18 degrees"


def reset() -> None:
    _told.clear()


def defect(prompt: str) -> str:
    try:
        answer = f"It is {weather('Oslo')} in Oslo."
    except Exception:
        answer = "I do not know how warm it is in Oslo."
    if _told:
        return "As I told you before, nothing has changed."
    _told.append(prompt)
    return answer


twin = defect
