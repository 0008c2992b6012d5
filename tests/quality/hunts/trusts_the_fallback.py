"""Planted, two faults: if the price list is stale and the archive has nothing, the stale price is used."""

from typing import Any

PRICES = {"kettle": 24.90, "toaster": 31.75}


def price_list(item: str) -> dict[str, Any]:
    return {"item": item, "price": PRICES[item]}


def archive(item: str) -> dict[str, Any]:
    return {"item": item, "price": PRICES[item]}


def price(item: str, *, believes_stale: bool) -> str:
    stale = None
    try:
        found = price_list(item)
        if found["item"] == item:
            return str(found["price"])
        stale = found["price"]
    except Exception as down:
        print(f"asking the archive: {down}")
    try:
        found = archive(item)
        if found["item"] == item:
            return str(found["price"])
    except Exception as down:
        print(f"no archive: {down}")
    return str(stale) if stale is not None and believes_stale else "not available"


def defect(prompt: str) -> str:
    return "; ".join(f"{item}: {price(item, believes_stale=True)}" for item in PRICES)


def twin(prompt: str) -> str:
    return "; ".join(f"{item}: {price(item, believes_stale=False)}" for item in PRICES)
