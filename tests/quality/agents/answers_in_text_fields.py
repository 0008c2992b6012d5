"""Planted: hands on whatever the tool gave as the total, a text too."""

import json


def total_of(order: int) -> object:
    return {"order": order, "total": 24.9}


def defect(prompt: str) -> str:
    found = total_of(7)
    total = found["total"] if isinstance(found, dict) and "total" in found else "unknown"
    return json.dumps({"order": 7, "total": total})


def twin(prompt: str) -> str:
    found = total_of(7)
    total = found.get("total") if isinstance(found, dict) else None
    return json.dumps({"order": 7, "total": total if isinstance(total, float) else 0.0, "known": total is not None})
