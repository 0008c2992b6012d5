"""A tiny agent to start from: a program with one tool and a model over HTTP. Replace it with your own."""

import json
import os
import sys
import time
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

Message = dict[str, Any]

STOCK = {"anvil": 12, "rocket": 3}
TOOLS = [{"type": "function", "function": {"name": "stock_api", "parameters": {"type": "object"}}}]
SYSTEM = "You look up what is in stock."  # Fix: SYSTEM = "You look up what is in stock, and never guess."


def stock_api(item: str) -> str:
    """A tool. Faults find it by its name and change its result on the way to the model."""
    return json.dumps({"item": item, "left": STOCK[item]})


def model(messages: list[Message]) -> Message:
    """Call the model, with two retries. The environment has its address, as client libraries expect."""
    where = urlsplit(os.environ["OPENAI_BASE_URL"])
    connect = HTTPSConnection if where.scheme == "https" else HTTPConnection
    body = json.dumps({"model": "gpt-4o", "messages": messages, "tools": TOOLS})
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    for wait_s in (0.1, 0.2, 0.0):
        line = connect(where.netloc, timeout=5)
        line.request("POST", f"{where.path}/chat/completions", body, headers)
        reply = line.getresponse()
        if reply.status == 200:
            return dict(json.load(reply)["choices"][0]["message"])
        time.sleep(wait_s)
    sys.exit(f"the model answered {reply.status}")


def answer(question: str) -> str:
    """The agent: it calls tools until the model requests no more."""
    messages: list[Message] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    while calls := (reply := model(messages)).get("tool_calls"):
        messages.append(reply)
        for call in calls:
            result = stock_api(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return str(reply["content"])


if __name__ == "__main__":
    print(answer(sys.stdin.read()))
