"""Planted: counts its questions in a file, so that a new process is no new agent. The twin counts in memory."""

from pathlib import Path

_FILE = Path(__file__).with_name("count.txt")


def weather(city: str) -> str:
    return "18 degrees"


def defect(prompt: str) -> str:
    with _FILE.open("a+") as file:
        file.write("x")
        file.flush()
        return _answer(_FILE.stat().st_size)


def twin(prompt: str) -> str:
    return _answer(1)


def _answer(n: int) -> str:
    try:
        return f"Question {n}: it is {weather('Oslo')}."
    except Exception:
        return f"Question {n}: nobody knows."
