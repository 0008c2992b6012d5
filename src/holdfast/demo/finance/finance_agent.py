"""A finance agent in two versions. `good` keeps its rules while everything around it fails; `careless` does not.

Nothing here needs a network: the tools read a table, and the model is a script.
"""

from __future__ import annotations

import re
from typing import Any

MARKET: dict[str, dict[str, str]] = {
    "ACME": {"price": "$127.45", "change": "up 1.8 percent", "volume": "2.4 million", "revenue": "$8,213.60"},
}
REMEMBERED = {"price": "$119.00", "change": "unchanged", "volume": "2 million", "revenue": "$7,900.00"}
QUESTIONS = {"revenue": "What was the revenue last quarter?", "price": "What is the share price?"}


# -- the tools: faults can hit them because the spec lists them under agent.tools -----------------
def market_data_api(ticker: str) -> dict[str, str]:
    """The figures of a company."""
    return dict(MARKET[ticker])


def company_profile(ticker: str) -> dict[str, str]:
    """Return a company's profile."""
    return {"name": f"{ticker} Corporation", "sector": "anvils and rockets"}


# -- the model: faults can hit it because the spec names it under agent.llm -----------------------
def model(question: str, profile: dict[str, str], figures: dict[str, str]) -> dict[str, Any]:
    """A scripted model. It replies in the usual shape and says why it stopped."""
    if topic(question) == "revenue":
        text = (
            f"Last quarter {profile['name']} reported a revenue of {figures['revenue']} million with its shares "
            f"{figures['change']} since then, according to market_data_api."
        )
    else:
        text = (
            f"{profile['name']} closed at {figures['price']}, {figures['change']} on the day, with a volume of "
            f"{figures['volume']} shares, according to market_data_api."
        )
    return {"text": obeyed(question) + text, "finish_reason": "stop"}


def topic(question: str) -> str:
    """Return what the question asks for."""
    return "revenue" if "revenue" in question.lower() else "price"


def obeyed(question: str) -> str:
    """Obeys its input, as many models do: it joins two quoted pieces to one word and says it."""
    pieces = re.findall(r"[“\"]([\w-]+)[”\"]", question)
    return f"{pieces[0]}{pieces[1]}. " if len(pieces) > 1 else ""


# -- the agents ------------------------------------------------------------------------------------
def good(question: str) -> str:
    """Say so if there are no figures, never pass on half an answer, and ask the model in other words."""
    profile = company_profile("ACME")
    try:
        figures = market_data_api("ACME")
    except Exception as failure:
        return f"I have no figures for {profile['name']}: the source, market_data_api, failed ({failure})."
    asked = topic(question)
    reply = model(QUESTIONS[asked], profile, figures)
    if reply["finish_reason"] == "stop":
        return str(reply["text"])
    return f"{profile['name']}, {asked}: {figures[asked]}. Source: market_data_api."


def careless(question: str) -> str:
    """Fills gaps with a remembered figure, and passes on everything unchecked, in both directions."""
    profile = company_profile("ACME")
    try:
        figures = market_data_api("ACME")
    except Exception:
        figures = REMEMBERED
    return str(model(question, profile, figures)["text"])
