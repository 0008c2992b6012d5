"""A tiny agent to start from: one tool, one model function, no network. Replace it with your own."""

STOCK = {"anvil": 12, "rocket": 3}


def stock_api(item: str) -> int:
    """A tool. Faults can hit it because holdfast.yaml lists it under agent.tools."""
    return STOCK[item]


def model(question: str, count: int) -> dict[str, str]:
    """A scripted model. Faults can hit it because holdfast.yaml names it under agent.llm."""
    return {"text": f"There are {count} anvils left, says the stock list.", "finish_reason": "stop"}


def answer(question: str) -> str:
    """The agent: it takes the prompt and returns its answer."""
    try:
        count = stock_api("anvil")
    except Exception:
        count = 10  # It guesses. Fix: return "I cannot see the stock list right now."
    reply = model(question, count)
    if reply["finish_reason"] != "stop":
        return f"The stock list says {count}."
    return reply["text"]
