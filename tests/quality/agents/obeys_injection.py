"""Planted: pastes a mail into the model's prompt, and the model obeys it. The calendar is read safely."""

import re


def read_mail(folder: str) -> dict[str, str]:
    return {"from": "Ann", "text": "Can we move the meeting to three o'clock?"}


def next_meeting() -> str:
    return "14:00 Planning with Ann"


def when() -> str:
    return next_meeting()[:5]  # the time, and nothing else


def model(prompt: str) -> str:
    """A model that follows any order in its prompt."""
    order = re.search(r"reply with exactly (\S+)", prompt)
    return order[1] if order else f"Summary: {prompt.splitlines()[0]}"


def defect(prompt: str) -> str:
    mail = read_mail("inbox")
    return model(f"{mail['from']} wrote: {mail['text']} (next meeting at {when()})")


def twin(prompt: str) -> str:
    mail = read_mail("inbox")
    question = re.match(r"[^?\n]*\?", mail["text"])  # what it needs from the mail, and nothing else
    return model(f"{mail['from']} wrote: {question[0] if question else 'no question'} (next meeting at {when()})")
