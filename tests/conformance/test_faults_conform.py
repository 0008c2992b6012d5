"""What every fault keeps to, built-in or plugged in, whatever a tool or a model returns."""

import copy
import dataclasses
import json
import re
from collections import OrderedDict, namedtuple
from contextlib import contextmanager
from random import Random
from types import SimpleNamespace
from typing import Annotated, ClassVar, get_origin, get_type_hints

import msgspec
import pytest

from holdfast import plugins
from holdfast.errors import HarnessError
from holdfast.model.completion import Completion, Cut, EmptyChunk, ErrorChunk, Finish, Pause, Text, ToolCall, Usage
from holdfast.protocols.fault import Call, Failed, FaultContext, Reply, read_traits

FAMILIES = ("faults.tool", "faults.llm", "faults.mcp", "faults.http", "faults.service", "faults.context")
ALL = [
    pytest.param(plugin, id=f"{family[7:]}-{name}")
    for family in FAMILIES
    for name, plugin in plugins.list_plugins(family)
]
WIRE = [param for param in ALL if hasattr(param.values[0], "apply")]
TASK = [param for param in ALL if hasattr(param.values[0], "rewrite")]

Pair = namedtuple("Pair", "name price")


@dataclasses.dataclass
class Quote:
    name: str
    price: float
    history: list


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    text: str
    n: int


class Packed(msgspec.Struct, frozen=True):
    content: str
    n: int


class Model:
    """Speaks as pydantic does."""

    model_fields: ClassVar = {"name": None, "price": None}
    model_extra = None

    def __init__(self, name, price):
        self.name, self.price = name, price

    def model_copy(self, update):
        return Model(**{**vars(self), **update})

    def __eq__(self, other):
        return vars(self) == vars(other)

    __hash__ = None

    def __repr__(self):
        return f"Model({self.name!r}, {self.price!r})"


ROWS = [{"id": 1, "name": "first one", "price": 189.3}, {"id": 2, "name": "second one", "price": 250.0}]
ZOO = {
    "none": None,
    "true": True,
    "zero": 0,
    "int": 1234,
    "float": 56.78,
    "empty text": "",
    "text": "The price of ACME is $189.30, and I can't say more. Ask again tomorrow.",
    "json text": json.dumps({"results": ROWS, "total": 2}),
    "compact json": json.dumps(ROWS, separators=(",", ":")),
    "bytes": b"price 189.30",
    "json bytes": json.dumps(ROWS).encode(),
    "binary": b"\x89PNG\xff\x00",
    "bytearray": bytearray(b"price 189.30"),
    "empty list": [],
    "empty dict": {},
    "rows": ROWS,
    "dict": {"results": ROWS, "total": 2},
    "ordered": OrderedDict(b=1, a=2),
    "odd keys": {1: "one two", None: 2.5, ("a", "b"): 3},
    "tuple": (1, "two words", 3.0),
    "set": {1, 2},
    "namedtuple": Pair("first one", 189.3),
    "dataclass": Quote("first one", 189.3, [1, 2]),
    "frozen": Frozen("two words", 17),
    "struct": Packed("two words", 17),
    "model": Model("first one", 189.3),
    "namespace": SimpleNamespace(text="two words", n=17),
    "exception": ValueError("a value"),
    "chat": {"choices": [{"message": {"content": "Two words 189.30."}, "finish_reason": "stop"}]},
    "blocks": {"content": [{"type": "text", "text": "Two words."}], "stop_reason": "end_turn"},
    "chunks": ["Two ", "words ", "189.30."],
}
CALL = ToolCall("call_1", "find_item", '{"name": "kettle"}')
WIRE_ZOO = {
    "nothing": Completion(),
    "text": Completion((Text("Two words "), Text("189.30 é."), Finish("stop"), Usage(20, 8)), model="gpt-4o"),
    "json": Completion((Text('{"unit_price": 1}'), Finish("stop"))),
    "call": Completion((CALL, Finish("tool_calls"), Usage(20, 8)), model="gpt-4o"),
    "text and calls": Completion((Text("I look."), CALL, ToolCall("call_2", "now", ""), Finish("tool_calls"))),
    "no end": Completion((Text("Two wor"), Cut())),
    "trouble": Completion((EmptyChunk(), Pause(5.0), Text("Two"), ErrorChunk("overloaded", "busy"))),
    "odd": Completion((Text("Two"), Finish("length")), lacks="message", odd=True),
}
ZOO |= {f"wire {kind}": reply for kind, reply in WIRE_ZOO.items()}
MODEL = [param for param in WIRE if param.id.startswith("llm-")]


def made(plugin):
    """The fault as the function plane makes it from an injection without settings."""
    return msgspec.convert({}, plugin, strict=False)


def meet(fault, value, seed=0, n=1, arguments=None, memory=None):
    """What the agent gets: a value, a failure, or the refusal of a shape. Any other exception is a broken fault."""

    async def forward(call):
        return Reply(value)

    async def sleep(ms):
        assert ms >= 0

    ctx = FaultContext(Random(seed), sleep, n, {} if memory is None else memory)
    coroutine = fault.apply(Call("tool", "search", arguments or {"q": "a"}, n), forward, ctx)
    try:
        coroutine.send(None)
    except StopIteration as done:
        reply: Reply = done.value
        return reply.value
    except (Failed, HarnessError) as raised:
        return f"{type(raised).__name__}: {raised}"
    coroutine.close()
    raise AssertionError("a fault may await only forward() and ctx.sleep()")


def look(value):
    """A value as something that can be compared, whatever it is."""
    return repr(value)


@pytest.mark.parametrize("plugin", ALL)
def test_a_fault_is_a_frozen_dataclass_with_a_catalogue_entry(plugin):
    assert dataclasses.is_dataclass(plugin)
    assert plugin.__dataclass_params__.frozen
    first = plugin.__doc__.splitlines()[0]
    assert first.endswith((".", '".'))
    assert not first.startswith(f"{plugin.__name__}(")


@pytest.mark.parametrize("plugin", ALL)
def test_a_fault_has_exactly_one_way_to_act(plugin):
    assert hasattr(plugin, "apply") != hasattr(plugin, "rewrite")


@pytest.mark.parametrize("plugin", ALL)
def test_every_setting_is_typed_and_described(plugin):
    hints = get_type_hints(plugin, include_extras=True)
    for field in dataclasses.fields(plugin):
        hint = hints[field.name]
        assert get_origin(hint) is Annotated, field.name
        assert any(isinstance(meta, msgspec.Meta) and meta.description for meta in hint.__metadata__), field.name


@pytest.mark.parametrize("plugin", ALL)
def test_a_fault_without_required_settings_can_be_made_from_none_and_has_no_problems(plugin):
    assert all(field.default is not dataclasses.MISSING for field in dataclasses.fields(plugin))
    fault = made(plugin)
    assert list(fault.problems() if hasattr(fault, "problems") else ()) == []


@pytest.mark.parametrize("plugin", ALL)
def test_settings_have_a_json_schema(plugin):
    schema = msgspec.json.schema(plugin)
    assert plugin.__name__ in schema["$defs"]


@contextmanager
def shown(kind):
    """Names the reply that a failure is about."""
    try:
        yield
    except Exception as broken:
        broken.add_note(f"the reply: {kind}")
        raise


@pytest.mark.parametrize("plugin", WIRE)
def test_a_fault_never_changes_the_reply_it_got(plugin):
    for kind, reply in ZOO.items():
        with shown(kind):
            value = copy.deepcopy(reply)
            before = look(value)
            for seed in range(3):
                received = meet(made(plugin), value, seed, n=seed + 1)
                look(received)  # the ledger prints it
                assert look(value) == before


@pytest.mark.parametrize("plugin", WIRE)
def test_the_same_luck_gives_the_same_result(plugin):
    for kind, reply in ZOO.items():
        with shown(kind):
            once = meet(made(plugin), copy.deepcopy(reply), seed=5)
            again = meet(made(plugin), copy.deepcopy(reply), seed=5)
            assert look(once) == look(again)


@pytest.mark.parametrize("plugin", MODEL)
@pytest.mark.parametrize("stream", [True, False])
def test_a_fault_of_the_model_takes_any_reply_on_the_wire_and_gives_one_that_can_be_sent(plugin, stream):
    for kind, reply in WIRE_ZOO.items():
        memory = {}
        for n in (1, 2):
            with shown(kind):
                received = meet(made(plugin), reply, n, n, arguments={"stream": stream}, memory=memory)
                if isinstance(received, str):
                    assert re.match(r"Failed: [45]\d\d |TimedOut: ", received)
                else:
                    assert msgspec.json.decode(msgspec.json.encode(received), type=Completion) == received


@pytest.mark.parametrize("plugin", MODEL)
def test_a_fault_of_the_wire_says_so_and_refuses_what_a_model_function_returned(plugin):
    only = read_traits(plugin).wire_only
    assert meet(made(plugin), "Two words.").startswith("HarnessError") == only


@pytest.mark.parametrize("plugin", TASK)
@pytest.mark.parametrize("text", ["", "word", "What is ACME worth?", "two\nlines\n", "ünïcode 価格"])
def test_an_attack_on_the_input_is_text_and_depends_on_luck_alone(plugin, text):
    async def sleep(ms):
        raise AssertionError("an attack on the input never waits")

    once, again = (made(plugin).rewrite(text, FaultContext(Random(3), sleep, 1)) for _ in range(2))
    assert isinstance(once, str)
    assert once == again
    assert once != text


def test_faults_do_not_import_asyncio_or_heavy_libraries():
    import subprocess
    import sys

    code = (
        "import sys; from holdfast import plugins\n"
        "for f in ('tool', 'llm', 'mcp', 'service', 'world', 'context'): list(plugins.list_plugins(f'faults.{f}'))\n"
        "print(sorted({'asyncio', 'yaml', 'aiohttp', 'regex', 'rapidfuzz'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert out.strip() == "[]"
