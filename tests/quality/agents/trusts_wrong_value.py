"""Planted: hands on a total that its own rows contradict."""

from typing import Any


def invoice(number: int) -> dict[str, Any]:
    return {"rows": [{"amount": 135}, {"amount": 247}], "total": 382}


def defect(prompt: str) -> str:
    try:
        return f"The total is {invoice(7)['total']}."
    except Exception:
        return "The invoice cannot be read."


def twin(prompt: str) -> str:
    try:
        found = invoice(7)
    except Exception:
        return "The invoice cannot be read."
    if sum(row["amount"] for row in found["rows"]) != found["total"]:
        return "The invoice cannot be right: its rows do not add up to its total."
    return f"The total is {found['total']}."
