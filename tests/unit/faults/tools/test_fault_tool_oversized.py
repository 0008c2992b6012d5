import asyncio
import json
from dataclasses import dataclass

import pytest

from holdfast.faults.tools.oversized import Oversized
from holdfast.model.scenario import Injection
from holdfast.protocols.fault import Call, Reply
from planes_kit import FakeContext


@dataclass
class Page:
    number: int
    text: str


@dataclass
class Rows:
    rows: list


def size(value):
    if isinstance(value, str | bytes):
        return len(value if isinstance(value, bytes) else value.encode())
    return len(json.dumps(vars(value) if hasattr(value, "__dict__") else value, ensure_ascii=False).encode())


@pytest.mark.parametrize(
    "value",
    [
        "text",
        b"text",
        b"\xff\x00",
        {"a": 1},
        {"details": 1},
        [{"a": 1}, {"a": 2}],
        [],
        '{"a":1}',
        '[{"a": 1}]',
        Page(1, "x"),
        Rows([1, 2]),
    ],
    ids=repr,
)
def test_oversized_pads_the_reply_and_keeps_its_type(meet, value):
    received = meet(Oversized(bytes=5_000), value)
    assert type(received) is type(value)
    assert 5_000 <= size(received) <= 5_100
    if isinstance(value, str | bytes) and value[:1] in ("{", "["):
        json.loads(received)


def test_oversized_appends_to_the_reply(meet):
    assert meet(Oversized(bytes=500), "text").startswith("text ")
    assert meet(Oversized(bytes=500), [1, 2])[:4] == [1, 2, 1, 2]
    assert meet(Oversized(bytes=500), {"a": 1})["a"] == 1


def test_oversized_is_a_million_bytes_by_default(meet):
    assert len(meet(Oversized(), "text")) == 1_000_000


@pytest.mark.parametrize(("value", "text"), [(5, "5 "), (1.5, "1.5 "), (True, "true ")])
def test_oversized_turns_a_number_in_model_traffic_into_text(value, text):
    context = FakeContext([Injection("tool", "*", "oversized", {"bytes": 500})])

    async def forward(call):
        return Reply(value)

    received = asyncio.run(context.injector.inject(Call("tool_result", "count", {}, 1), forward, asyncio.sleep)).value
    assert received.startswith(text)
    assert len(received) == 500
    assert [met.effect for met in context.ledger] == ["met"]


@pytest.mark.parametrize("value", [5, None, True, 1.5, "longer than that", object()])
def test_oversized_has_no_effect_on_what_cannot_grow_or_is_large_already(meet, value):
    assert meet(Oversized(bytes=4), value) is value
