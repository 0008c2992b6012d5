"""Planted: hands what a tool returned to native code that trusts it."""

import ctypes


def offsets(name: str) -> dict[str, int]:
    return {"first": 1, "length": 4}


def _native(first: int, length: int) -> str:
    data = ctypes.create_string_buffer(b"\0holdfast")
    start = ctypes.addressof(data) if first else 0
    return ctypes.string_at(start + max(first, 1), max(length, 1)).decode()


def defect(prompt: str) -> str:
    found = offsets("x")
    return f"It says {_native(found.get('first', 0), found.get('length', 0))}."


def twin(prompt: str) -> str:
    found = offsets("x")
    if not {"first", "length"} <= found.keys():
        return "The place is not known."
    return f"It says {_native(found['first'], found['length'])}."
