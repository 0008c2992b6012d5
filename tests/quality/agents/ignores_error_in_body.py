"""Planted: takes any reply for a success, though the body says it failed."""

from typing import Any


def cancel(order: int) -> dict[str, Any]:
    return {"cancelled": True}


def defect(prompt: str) -> str:
    try:
        cancel(7)
    except Exception:
        return "I could not cancel the order."
    return "The order is cancelled."


def twin(prompt: str) -> str:
    try:
        done = cancel(7).get("cancelled") is True
    except Exception:
        done = False
    return "The order is cancelled." if done else "I could not cancel the order."
