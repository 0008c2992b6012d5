"""Planted: answers with nothing when the provider turns it away."""

import time

from holdfast import InjectedError


def model(prompt: str) -> str:
    return "Water boils at 100 degrees."


def defect(prompt: str) -> str:
    try:
        return model(prompt)
    except Exception:
        return ""


def twin(prompt: str) -> str:
    for _ in range(2):
        try:
            return model(prompt)
        except InjectedError as limited:
            time.sleep(min(limited.retry_after or 0, 0.1))
    return "The model is busy. Please ask again in a moment."
