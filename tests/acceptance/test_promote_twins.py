"""`promote` on agents with awkward calls, values and exceptions: the broken one fails its session, the fixed passes.

Each source has the word REACT where the two differ: what the agent does when its call did not go well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from cli import CALM, Asked, MakeProject, Project, Serve, contract, rule
from plane_agents import SCRIPTED, command, equip
from test_mcp_cli import SERVERS, SHOP, USES
from test_promote import MODEL, failed_trials, replayed

NO_GUESS = rule("no-guess", "excludes_pattern", patterns=["costs .25"], severity="critical")
SAYS = rule("says", value="costs $40")
BOTH = [NO_GUESS, SAYS]
GUESS = "return 'it costs $25'"
ONCE = {"mode": "error", "times": 1}


class Pair(NamedTuple):
    """An agent with one defect, how it reacts once that is fixed, and where the defect shows."""

    source: str
    fixed: str
    storm: Mapping[str, Any]
    broken: str = GUESS
    rules: list[dict[str, Any]] = BOTH
    agent: Mapping[str, Any] = MappingProxyType({})
    prompt: str = "What does order 7 cost?"
    more: Mapping[str, Any] = MappingProxyType({})
    calm: bool = False
    """The defect shows without faults."""

    def text(self, react: str) -> str:
        return self.source.replace("REACT", react)


def tools(*names: str) -> dict[str, Any]:
    return {"type": "python", "endpoint": "agent:ask", "tools": [f"agent:{name}" for name in names]}


def on(tool: str, **fault: Any) -> dict[str, Any]:
    return {"tool_faults": [{"tool": tool, **(fault or ONCE)}]}


def retrying(made: str, tool: str = "def find_order(number, mark):\n    return {'paid': 40}\n") -> str:
    """An agent that calls its tool with an argument that differs every time."""
    return (
        f"import datetime, os, random, time, uuid\n\n{tool}\n"
        f"def call():\n    return f\"it costs ${{find_order(7, {made})['paid']}}\"\n\n"
        "def ask(prompt):\n    try:\n        return call()\n    except Exception:\n        REACT\n"
    )


def valued(value: str, use: str, head: str = "") -> str:
    """An agent with a tool that works, whose value it needs, and one that fails."""
    return (
        f"import collections, dataclasses, datetime, decimal, enum, math, pathlib, uuid\n{head}\n"
        f"def find_order(number):\n    return {value}\n\ndef stock():\n    return 1\n\n"
        f"def ask(prompt):\n    order = find_order(7)\n    price = {use}\n    try:\n        stock()\n"
        "    except Exception:\n        REACT\n    return f'it costs ${price}'\n"
    )


def raising(head: str, caught: str) -> str:
    """An agent whose tool raises by itself."""
    return (
        f"{head}\n\ndef find_order(number):\n    RAISE\n\n"
        f"def ask(prompt):\n    try:\n        find_order(7)\n    except {caught} as down:\n        REACT\n"
    )


STOCK = on("stock", mode="error")
VALUES = tools("find_order", "stock")
CANNOT = "return f'it costs ${price}, and I cannot see the stock'"
LONG = "[{'n': n, 'note': 'x' * 40} for n in range(400)]"
CALMLY = [{**NO_GUESS, "when": "no_chaos"}]
DECLINED = """
class Declined(Exception):
    def __init__(self, code, *, reason):
        super().__init__(f"declined: {reason}")
        self.code = code
"""
TWO = """
import uuid


def find_order(number, mark):
    return {"paid": number * 5}


def paid(number):
    try:
        return find_order(number, mark=str(uuid.uuid4()))["paid"]
    except Exception:
        REACT


def ask(prompt):
    return f"it costs ${paid(3) + paid(5)}"
"""
LUCKY = """
import uuid


def find_order(number, mark):
    return {"paid": number * 4}


def paid(number):
    for _ in range(9):
        try:
            return find_order(number, mark=str(uuid.uuid4()))["paid"]
        except Exception:
            REACT


def ask(prompt):
    return f"it costs ${sum(paid(n) for n in (1, 2, 3, 4))}"
"""
REPEATS = """
import uuid


def create(kind, key):
    return {"id": key, "said": f"order {key} is made", "paid": 40}


def ask(prompt):
    for _ in range(2):
        key = uuid.uuid4()
        try:
            made = create("order", key)
        except Exception:
            REACT
        return f"it costs ${made['paid'] if made['id'] == key and str(key) in made['said'] else 25}"
"""
CHAIN = """
import uuid

from langchain_core.tools import tool


@tool
def find_order(number: int, mark: str) -> dict:
    "The order."
    return {"paid": 40}


def call():
    return f"it costs ${find_order.invoke({'number': 7, 'mark': str(uuid.uuid4())})['paid']}"


def ask(prompt):
    try:
        return call()
    except Exception:
        REACT
"""
WEB = """
import json, sys, time, uuid, talk
URL = sys.stdin.read().split()[-1]

def call():
    url, body = URL + SUFFIX, json.dumps({"number": 7, "mark": str(uuid.uuid4()), "at": time.time()})
    status, text = talk.request("POST", url, body, {"content-type": "application/json"}, proxy=True)
    found = json.loads(text)
    if (found["of"], url.endswith(found["path"])) != (json.loads(body), True):
        return "it costs $25: this is the reply to another request"
    return f"it costs ${found['paid']}"

def ask():
    try:
        return call()
    except Exception:
        REACT
print(ask())
"""
MCP = (
    USES.partition("server = Server()")[0]
    + """
import time, uuid
server = Server()

def call(n):
    reply = server.ask(n, "tools/call", name="find", arguments={"q": "x", "mark": str(uuid.uuid4()), "at": time.time()})
    result = reply.get("result") or {"isError": True}
    return None if result.get("isError") else len(result["content"][0]["text"])

def ask():
    found = call(2)
    if not found:
        REACT
    return "it costs $40" if found else "it costs nothing"
print(ask())
"""
)
LONG_SHOP = SHOP.replace('"rows": [1, 2, 3]', '"rows": ["x" * 40] * 400')
CHAT = """
import sys, talk

def call(words):
    status, body = talk.chat([{"role": "user", "content": words}])
    return status == 200 and "40" in (body["choices"][0]["message"]["content"] or "")

def ask(words):
    if not call(words):
        REACT
    return "it costs $40"
print(ask(sys.stdin.read()))
"""
ASKED = """
import uuid


def find_order(number, mark):
    return {"paid": 40, "note": "thank you"}


def ask(prompt):
    order = find_order(7, mark=str(uuid.uuid4()))
    REACT
"""
OBEYS = rule("obeys-nobody", "excludes_pattern", patterns=["HOLDFAST-CANARY"], severity="critical",
             when="any_chaos_active")  # fmt: skip


def pairs(url: str = "http://127.0.0.1:1") -> dict[str, Pair]:
    """By what is awkward."""
    again, one = "return call()", tools("find_order")
    web = {"tool_faults": [{"tool": "pay", "match_url": f"{url}/*", **ONCE}]}
    lost = {"tool_faults": [{"tool": "pay", "match_url": f"{url}/*", "mode": "lost_reply", "times": 1}]}
    served = {"agent": command(), "prompt": f"pay {url}/pay"}
    return {
        # a retry with other arguments
        "a made id": Pair(retrying("uuid.uuid4()"), again, on("find_order"), agent=one),
        "a time": Pair(retrying("time.time()"), again, on("find_order"), agent=one),
        "a date": Pair(retrying("datetime.datetime.now()"), again, on("find_order"), agent=one),
        "a long token": Pair(retrying("os.urandom(16).hex()"), again, on("find_order", mode="timeout", delay_ms=10,
                             times=1), agent=one),
        "a lost reply": Pair(retrying("uuid.uuid4()"), again, on("find_order", mode="lost_reply", times=1), agent=one),
        "one of two calls": Pair(TWO, "return find_order(number, mark=str(uuid.uuid4()))['paid']", on("find_order"),
                                 "return 10", agent=one, rules=[SAYS]),
        "luck": Pair(LUCKY, "continue", on("find_order", mode="error", probability=0.95), "return -15", agent=one,
                     rules=[SAYS]),
        "an id that the reply repeats": Pair(REPEATS, "continue", on("create"), agent=tools("create")),
        "a random number that the reply repeats": Pair(
            REPEATS.replace("uuid.uuid4()", "random.randrange(10**4, 10**9)").replace("uuid", "random"),
            "continue", on("create"), agent=tools("create")),
        "LangChain": Pair(CHAIN, again, on("find_order"), agent=one),
        "a body": Pair(WEB.replace("SUFFIX", "''"), again, web, **served),
        "a path": Pair(WEB.replace("SUFFIX", "'/' + str(uuid.uuid4())"), again, web, **served),
        "a body, reply lost": Pair(WEB.replace("SUFFIX", "''"), again, lost, **served),
        "an MCP call": Pair(MCP, "found = call(3)", on("find"), agent=command(mcp_config=SERVERS)),
        # values that JSON does not have
        "dates": Pair(valued("{'due': datetime.date(2026, 1, 2), 'at': datetime.datetime.now(datetime.UTC)}",
                             "order['due'].day * 20 + order['at'].microsecond * 0"), CANNOT, STOCK, agent=VALUES),
        "numbers": Pair(valued("(decimal.Decimal('40.0'), 2**64, math.inf, 1j)",
                               "int(order[0] + (order[1] - 2**64)) if type(order) is tuple else 1"), CANNOT, STOCK,
                        agent=VALUES),
        "bytes and keys": Pair(valued("{40: b'\\xff', 'b': {uuid.UUID(int=7)}, 'a': pathlib.Path('x').joinpath('y')}",
                                      "next(iter(order)) + order[40].count(b'a') + len(order['a'].parts) - 2"),
                               CANNOT, STOCK, agent=VALUES),
        "a dataclass": Pair(valued("[Order(Kind.PAID, 40)]", "order[0].paid if order[0].kind is Kind.PAID else 1",
                                   "class Kind(enum.Enum):\n    PAID = 1\n\n@dataclasses.dataclass(frozen=True)\n"
                                   "class Order:\n    kind: Kind\n    paid: int\n"), CANNOT, STOCK, agent=VALUES),
        "a model of pydantic": Pair(valued("Order(paid='40')", "order.model_copy().paid", "from pydantic import "
                                    "BaseModel\n\nclass Order(BaseModel):\n    paid: decimal.Decimal\n"), CANNOT, STOCK,
                                    agent=VALUES),
        "the order of keys": Pair(valued("{'z': 40, 'a': '[1]'}", "list(order.values())[0]"), CANNOT, STOCK,
                                  agent=VALUES),
        "a long value": Pair(valued(LONG, "len(order) // 10"), CANNOT, STOCK, agent=VALUES),
        "a long value, reply lost": Pair(retrying("uuid.uuid4()", "def find_order(number, mark):\n"
                                         f"    return {{'paid': 40, 'rows': {LONG}}}\n"), again,
                                         on("find_order", mode="lost_reply", times=1), agent=one),
        "a long MCP result": Pair(MCP, "globals()['server'] = Server(); found = call(3)",
                                  on("find", mode="lost_reply", times=1), agent=command(mcp_config=SERVERS)),
        # exceptions
        "more than a message": Pair(raising(DECLINED, "Declined").replace("RAISE", "raise Declined(7, reason='funds')"),
                                    "return f'it costs ${down.code} more than you have'", on("find_order", **ONCE),
                                    "return 'it costs $25' if down.code == 7 else 'declined'", rules=CALMLY, agent=one,
                                    calm=True),
        "fields of an exception": Pair(raising("", "OSError").replace("RAISE", "open('/nowhere/at/all')"),
                                       "return 'nothing'", {}, "return 'it costs $25' if down.errno == 2 else 'no'",
                                       rules=CALMLY, agent=one, calm=True),
        "an attribute set later": Pair(raising("", "LookupError").replace("RAISE", "late = KeyError('7')\n"
                                       "    late.when = {'tries': (1, 2)}\n    raise late"), "return 'nothing'", {},
                                       "return 'it costs $25' if down.when['tries'] == (1, 2) else 'no'",
                                       rules=CALMLY, agent=one, calm=True),
        "the cause of an exception": Pair(raising("", "LookupError").replace("RAISE", "try:\n        open('/nowhere')\n"
                                          "    except OSError as why:\n        raise LookupError(number) from why"),
                                          "return 'nothing'", {},
                                          "return 'it costs $25' if down.__cause__.errno == 2 else 'no'",
                                          rules=CALMLY, agent=one, calm=True),
        "a host that is refused": Pair(WEB.replace("SUFFIX", "''"), "return 'I cannot reach it'", {},
                                       rules=CALMLY, calm=True, **served),
        # models and attacks
        "a model that fails twice": Pair(CHAT, "call(words), call(words)", {"llm_faults": [{"mode": "server_error",
                                         "times": 2}]}, rules=[NO_GUESS], agent=command(), more={"models": SCRIPTED}),
        "an empty completion": Pair(CHAT, "call(words)", {"llm_faults": [{"mode": "empty", "times": 1}]},
                                    rules=[NO_GUESS], agent=command(), more={"models": SCRIPTED}),
        "a poisoned result": Pair(ASKED, "return f\"it costs ${order['paid']}\"", {"context_attacks": [
            {"type": "indirect_injection"}]}, "return str(order)", rules=[OBEYS], agent=one),
        "a poisoned memory": Pair(ASKED, "return f\"it costs ${order['paid']}\"", {"context_attacks": [
            {"type": "memory_poisoning"}]}, "return prompt", rules=[OBEYS], agent=one),
    }  # fmt: skip


def promoted(project: MakeProject, one: Pair) -> Project:
    """A project with the broken agent, whose failed trial was promoted."""
    matrix = [CALM, *([] if one.calm else [{"name": "storm", **one.storm}])]
    spec = contract(one.rules, matrix, agent=one.agent, prompts=(one.prompt,), **one.more)
    made = equip(project(spec, one.text(one.broken)), MODEL, shop=LONG_SHOP)
    trial = failed_trials(made)["calm" if one.calm else "storm"]
    done = made.cli("promote", trial["id"])
    assert done.code == 0, done.err
    return made


@pytest.mark.parametrize("name", pairs())
def test_the_broken_agent_fails_its_session_and_the_fixed_one_passes(
    project: MakeProject, serve: Serve, name: str
) -> None:
    def repeats(asked: Asked) -> tuple[int, str]:
        return 200, json.dumps({"paid": 40, "of": json.loads(asked.body), "path": asked.path})

    holds(project, pairs(serve(repeats).url)[name])


@pytest.mark.parametrize("isolation", ["worker", "inline"])
@pytest.mark.parametrize("name", ["a made id", "luck", "numbers", "a dataclass", "more than a message"])
def test_so_they_do_in_every_isolation(project: MakeProject, name: str, isolation: str) -> None:
    one = pairs()[name]
    holds(project, one._replace(agent={**one.agent, "isolation": isolation}))


@pytest.mark.parametrize("name", ["a made id", "a lost reply", "a dataclass", "fields of an exception"])
def test_so_they_do_where_tools_are_coroutines(project: MakeProject, name: str) -> None:
    one = pairs()[name]
    source, fixed = (_awaited(text) for text in (one.source, one.fixed))
    holds(project, one._replace(source=source, fixed=fixed))


def _awaited(text: str) -> str:
    for word in ("find_order", "stock", "call"):
        text = re.sub(rf"(?<!def ){word}\(", f"await {word}(", text).replace(f"def {word}", f"async def {word}")
    return text.replace("{await ", "{(await ").replace(")['paid']}", "))['paid']}").replace("def ask", "async def ask")


def holds(project: MakeProject, one: Pair) -> None:
    """The broken agent fails the session, time and again, and the fixed one passes it."""
    made = promoted(project, one)
    for _ in range(2):
        (failed,) = replayed(made).values()
        assert failed["status"] == "fail", failed
        assert failed["reason"].startswith(one.rules[0]["id"])
    (made.folder / "agent.py").write_text(one.text(one.fixed))
    (passed,) = replayed(made).values()
    assert passed["status"] == "pass", passed


# -- what cannot be kept, or known again -------------------------------------------------------------
UNKEPT = {
    "a changed argument": (
        "def find_order(order):\n    order['paid'] = 40\n    return True\n\ndef stock():\n    return 1\n\n"
        "def ask(prompt):\n    order = {}\n    find_order(order)\n    price = order['paid']\n    try:\n"
        "        stock()\n    except Exception:\n        REACT\n    return f'it costs ${price}'\n", "in place",
    ),
    "a function": (valued("lambda: 40", "order()"), "builtins:function"),
    "a class inside a function": (
        valued("made()", "order.paid", "def made():\n    class Order:\n        paid = 40\n    return Order()\n"),
        "Order",
    ),
    "a reply that is too long": (valued("'x' * 600_000", "len(order) // 15_000"), "500,000"),
    "a generator": (
        valued("None", "next(items())", "def items():\n    yield 40\n"), "generator",
    ),
    "an exception inside a function": (
        raising("def made():\n    class Odd(Exception):\n        pass\n    return Odd()", "Exception")
        .replace("RAISE", "raise made()").replace("REACT", GUESS), "Odd",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKEPT)
def test_a_trial_whose_replies_no_file_can_hold_is_refused_with_the_reason(project: MakeProject, name: str) -> None:
    source, words = UNKEPT[name]
    agent = tools("find_order", *(one for one in ("stock", "items") if f"def {one}(" in source))
    storm = {"name": "storm", **(STOCK if "def stock" in source else on("find_order", mode="slow", delay_ms=5))}
    made = project(contract([NO_GUESS], [storm], agent=agent), source.replace("REACT", GUESS))
    trial = failed_trials(made)["storm"]["id"]
    done = made.cli("promote", trial)
    assert (done.code, done.out) == (4, "")
    assert words in done.err
    assert not (made.folder / "replays").exists()


def test_a_body_that_is_not_text_is_refused(project: MakeProject, serve: Serve) -> None:
    server = serve(lambda asked: (200, b"caf\xe9"))
    source = WEB.replace("SUFFIX", "''").replace("REACT", GUESS)
    matrix = [CALM, {"name": "storm", "tool_faults": [{"tool": "pay", "match_url": f"{server.url}/*", **ONCE}]}]
    made = equip(project(contract([NO_GUESS], matrix, agent=command(), prompts=(f"pay {server.url}/pay",)), source))
    done = made.cli("promote", failed_trials(made)["calm"]["id"])
    assert (done.code, done.out) == (4, "")
    assert "not text" in done.err


UNKNOWN = {
    "no calm trial": (retrying("uuid.uuid4()"), []),
    "a word that nobody could know": (retrying("''.join(random.choices('abcdefgh', k=9))"), [CALM]),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_retry_that_the_recording_does_not_know_is_unproven_and_never_a_fail(project: MakeProject, name: str) -> None:
    source, calm = UNKNOWN[name]
    matrix = [*calm, {"name": "storm", **on("find_order")}]
    made = project(contract(BOTH, matrix, agent=tools("find_order")), source.replace("REACT", GUESS))
    done = made.cli("promote", failed_trials(made, "--no-preflight")["storm"]["id"])
    assert done.code == 0, done.err
    assert "find_order" in done.err  # a note says that its reply is not known
    (failed,) = replayed(made).values()
    assert failed["status"] == "fail"
    (made.folder / "agent.py").write_text(source.replace("REACT", "return call()"))
    (unproven,) = replayed(made).values()
    assert unproven["status"] == "unproven"
    assert "session-call-unknown" in [cause["code"] for cause in unproven["causes"]]
