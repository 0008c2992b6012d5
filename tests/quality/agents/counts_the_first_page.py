"""Planted: takes the first page for all there is."""

from typing import Any


def invoices(customer: str) -> dict[str, Any]:
    return {"count": 3, "items": [{"id": 1}, {"id": 2}, {"id": 3}]}


def defect(prompt: str) -> str:
    try:
        return f"There are {len(invoices('ann')['items'])} invoices."
    except Exception:
        return "I cannot see all invoices."


def twin(prompt: str) -> str:
    try:
        return f"There are {invoices('ann')['count']} invoices."
    except Exception:
        return "I cannot see all invoices."
