"""Planted: one call a line, one after the other, where one call would do."""

LINES = [f"sku-{n}" for n in range(15)]


def stock(items: list[str]) -> dict[str, int]:
    return dict.fromkeys(items, 2)


def defect(prompt: str) -> str:
    return f"There are {sum(stock([line])[line] for line in LINES)} pieces."


def twin(prompt: str) -> str:
    return f"There are {sum(stock(LINES).values())} pieces."
