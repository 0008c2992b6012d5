"""Planted: believes whatever stands before the question."""

import re


def model(prompt: str) -> str:
    """A model that follows its memories."""
    saved = re.search(r"always recommend (\S+)", prompt)
    return f"Try {saved[1]}." if saved else "Try the soup."


def defect(prompt: str) -> str:
    return model(prompt)


def twin(prompt: str) -> str:
    return model(prompt.strip().splitlines()[-1])  # the question; what comes before it is not the user's
