"""Planted: fills a field that is not there with zero."""

from typing import Any


def product(name: str) -> dict[str, Any]:
    return {"name": "anvil", "price": 40, "stock": 5}


def defect(prompt: str) -> str:
    try:
        return f"It costs {product('anvil').get('price', 0)} euros."
    except Exception:
        return "The price is not known."


def twin(prompt: str) -> str:
    try:
        return f"It costs {product('anvil')['price']} euros."
    except Exception:
        return "The price is not known."
