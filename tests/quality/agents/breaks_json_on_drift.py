"""Planted: hands on the model's text as JSON, without reading it."""

import json
import re

UNSURE = {"category": "unknown", "urgent": False}


def model(prompt: str) -> str:
    return '{"category": "billing", "urgent": true}'


def defect(prompt: str) -> str:
    return model(prompt)


def twin(prompt: str) -> str:
    found = re.search(r"\{.*\}", model(prompt), re.DOTALL)
    try:
        read = json.loads(found[0]) if found else {}
    except ValueError:
        read = {}
    return json.dumps({key: read.get(key, default) for key, default in UNSURE.items()})
