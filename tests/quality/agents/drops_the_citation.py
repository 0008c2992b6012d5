"""Planted: leaves the citation to the model, and a truncated answer loses it."""


def search(query: str) -> dict[str, str]:
    return {"fact": "The bridge is 120 metres long and was opened in 1932.", "source": "city archive, file 7"}


def model(found: dict[str, str]) -> dict[str, str]:
    return {"text": f"{found['fact']} Source: {found['source']}.", "finish_reason": "stop"}


def _found() -> dict[str, str]:
    try:
        return search("bridge")
    except Exception:
        return {"fact": "The archive cannot be reached.", "source": "none, the search failed"}


def defect(prompt: str) -> str:
    return model(_found())["text"]


def twin(prompt: str) -> str:
    found = _found()
    reply = model(found)
    if reply["finish_reason"] == "length":
        return f"{reply['text']} … Source: {found['source']}."
    return reply["text"]
