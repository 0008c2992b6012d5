"""Planted, one fault: charges again when only the reply was lost."""


def charge(guest: str, amount: float, idempotency_key: str | None = None) -> str:
    return "receipt-90412"


def defect(prompt: str) -> str:
    for _ in range(2):
        try:
            return f"Paid: {charge('G-2207', 142.5)}."
        except Exception as lost:
            print(f"again: {lost}")
    return "The bank does not answer."


def twin(prompt: str) -> str:
    for _ in range(2):
        try:
            return f"Paid: {charge('G-2207', 142.5, 'order-7781')}."
        except Exception as lost:
            print(f"again with the same key: {lost}")
    return "The bank does not answer."
