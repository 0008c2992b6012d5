"""Planted: keeps only the beginning of what it is asked."""

WINDOW = 400


def _answer(text: str) -> str:
    if "capital of portugal" in text.lower():
        return "It is Lisbon."
    return "What would you like to know?"


def defect(prompt: str) -> str:
    return _answer(prompt[:WINDOW])


def twin(prompt: str) -> str:
    half = WINDOW // 2
    return _answer(prompt if len(prompt) <= WINDOW else f"{prompt[:half]}\n{prompt[-half:]}")
