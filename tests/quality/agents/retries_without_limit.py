"""Planted: tries again until the tool answers, however long that takes."""

import time


def weather(city: str) -> str:
    return "18 degrees"


def defect(prompt: str) -> str:
    while True:
        try:
            return f"It is {weather('Oslo')}."
        except Exception:
            time.sleep(0.01)


def twin(prompt: str) -> str:
    for _ in range(3):
        try:
            return f"It is {weather('Oslo')}."
        except Exception:
            time.sleep(0.01)
    return "The weather service does not answer."
