"""Planted: takes the first word of the model's reply, and there may be none."""


def model(prompt: str) -> dict[str, str]:
    return {"content": "billing: the customer asks about an invoice"}


def defect(prompt: str) -> str:
    return f"This goes to {model(prompt)['content'].split()[0]}"


def twin(prompt: str) -> str:
    words = model(prompt)["content"].split()
    return f"This goes to {words[0] if words else 'a person'}"
