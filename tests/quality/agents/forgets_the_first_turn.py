"""Planted: answers the last question alone, and what was said before it is gone."""

from __future__ import annotations

import re

Message = dict[str, str]


def lookup(order: str) -> str:
    return f"Order {order} arrives on Friday."


def _answer(heard: list[Message]) -> str:
    said = " ".join(one["content"] for one in heard if one["role"] == "user")
    order = re.search(r"\d{4}", said)
    if "arrive" not in heard[-1]["content"]:
        return "Noted."
    if order is None:
        return "Please tell me the number of your order."
    try:
        return lookup(order[0])
    except Exception:
        return f"I cannot look up order {order[0]} just now."


def defect(messages: list[Message]) -> str:
    return _answer(messages[-1:])


def twin(messages: list[Message]) -> str:
    return _answer(messages)
