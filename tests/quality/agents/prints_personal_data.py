"""Planted: shows the raw reply when it cannot read it, and the reply is about a customer."""

import json


def customer(number: int) -> str:
    note = "Prefers parcels to be left at the side door, and a call before noon if something is missing."
    return json.dumps({"email": "jane.roe@mail-example.com", "name": "Jane Roe", "orders": [17, 23], "note": note})


def defect(prompt: str) -> str:
    reply = ""
    try:
        reply = customer(4)
        return f"The customer has {len(json.loads(reply)['orders'])} orders."
    except ValueError:
        return f"I could not read this reply: {reply}"
    except Exception:
        return "The customer file is not available."


def twin(prompt: str) -> str:
    try:
        return f"The customer has {len(json.loads(customer(4))['orders'])} orders."
    except Exception:
        return "The customer file is not available."
