"""Planted: quotes a figure from memory when the price service fails, as it did in the recorded session."""


def prices(item: str) -> float:
    return 12.5


def stock(item: str) -> int:
    return 4


def _said(price: str) -> str:
    try:
        left = f"There are {stock('anvil')} left."
    except Exception:
        left = "I cannot see the stock."
    return f"{price} {left}"


def defect(prompt: str) -> str:
    try:
        price = prices("anvil")
    except Exception:
        price = 11.0
    return _said(f"An anvil costs ${price:.2f}.")


def twin(prompt: str) -> str:
    try:
        price = prices("anvil")
    except Exception:
        return _said("The price service is down: I have no price.")
    return _said(f"An anvil costs ${price:.2f}.")
