"""Imported traces: the arguments tell several calls of one tool apart, because an agent may call them in any order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from replay_kit import read_json

CALLS = (
    ("weather", {"city": "Berlin"}, "rain"),
    ("weather", {"city": "Rome"}, "sun"),
    ("clock", {"zone": "CET"}, "12"),
)
DEEP = json.loads("[" * 300 + "]" * 300)
ASKED = "How is the weather in Berlin and Rome?"


def iso(n: int) -> str:
    return f"2026-11-10T12:00:{n:02d}+00:00"


def build_langfuse(wrapped: bool) -> Any:
    def step(n: int, kind: str, name: str, given: Any, output: Any) -> Any:
        times = {"startTime": iso(n), "endTime": iso(n)}
        return {"id": f"o{n}", "traceId": "t1", "type": kind, "name": name, "input": given, "output": output, **times}

    tools = [
        step(n, "TOOL", name, json.dumps({"input": arguments}) if wrapped else arguments, output)
        for n, (name, arguments, output) in enumerate(CALLS, 1)
    ]
    return {"id": "t1", "timestamp": iso(0), "input": ASKED, "observations": [step(0, "AGENT", "a", ASKED, ""), *tools]}


def build_otlp() -> Any:
    def span(n: int, name: str, **attributes: str) -> Any:
        pairs = [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in attributes.items()]
        at = str(1_794_225_600_000_000_000 + n * 1_000_000_000)
        times = {"startTimeUnixNano": at, "endTimeUnixNano": at}
        return {"traceId": "a" * 32, "spanId": f"{n:016x}", "name": name, "attributes": pairs, **times}

    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": ASKED}]}])
    spans = [span(9, "chat m", gen_ai__operation__name="chat", gen_ai__input__messages=messages)]
    spans += [
        span(n, f"execute_tool {name}", gen_ai__operation__name="execute_tool", gen_ai__tool__name=name,
             gen_ai__tool__call__arguments=json.dumps(arguments), gen_ai__tool__call__result=output)
        for n, (name, arguments, output) in enumerate(CALLS, 10)
    ]  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def build_langsmith() -> Any:
    def run(n: int, kind: str, name: str, inputs: Any, outputs: Any) -> Any:
        above = {} if n == 0 else {"parent_run_id": "r0"}
        times = {"start_time": iso(n), "end_time": iso(n), "trace_id": "r0"}
        return {"id": f"r{n}", "run_type": kind, "name": name, "inputs": inputs, "outputs": outputs, **above, **times}

    tools = [run(n, "tool", name, arguments, {"output": out}) for n, (name, arguments, out) in enumerate(CALLS, 1)]
    return [run(0, "chain", "agent", {"input": ASKED}, {}), *tools]


def build_phoenix() -> Any:
    def span(n: int, kind: str, name: str, given: Any, output: str) -> Any:
        attributes = {"input.value": given, "output.value": output}
        about = {"context": {"trace_id": "t1", "span_id": f"s{n}"}, "parent_id": "s0" if n else None}
        times = {"start_time": iso(n), "end_time": iso(n), "status_code": "OK"}
        return {"name": name, "span_kind": kind, "attributes": attributes, "events": [], **about, **times}

    tools = [span(n, "TOOL", name, json.dumps(arguments), out) for n, (name, arguments, out) in enumerate(CALLS, 1)]
    return [span(0, "AGENT", "desk", ASKED, ""), *tools]


def build_inspect() -> Any:
    tools = [
        {
            "event": "tool",
            "function": name,
            "arguments": arguments,
            "result": output,
            "timestamp": iso(n),
            "completed": iso(n),
        }
        for n, (name, arguments, output) in enumerate(CALLS)
    ]
    sample = {"id": 1, "epoch": 1, "input": ASKED, "target": "", "messages": [], "scores": {}, "events": tools}
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "t", "run_id": "r", "eval_id": "e"},
        "samples": [sample],
    }


@pytest.mark.parametrize(
    "document",
    [build_langfuse(False), build_langfuse(True), build_otlp(), build_langsmith(), build_phoenix(), build_inspect()],
    ids=["langfuse", "langfuse-wrapped", "otlp", "langsmith", "phoenix", "inspect"],
)
def test_arguments_are_kept_where_they_tell_calls_apart(tmp_path: Path, document: Any) -> None:
    (found,) = read_json(tmp_path, document).sessions
    known = [(one.tool, json.loads(one.arguments or "null"), str(json.loads(one.response))) for one in found.responses]
    assert known == [*CALLS[:2], ("clock", None, "12")]


@pytest.mark.parametrize(
    "given", ["Berlin", None, 7, ["Berlin"], "{broken", {}, {"input": "Berlin"}, {"a": DEEP}, json.dumps({"a": DEEP})]
)
def test_input_that_is_not_a_map_of_arguments_tells_nothing_apart(tmp_path: Path, given: Any) -> None:
    document = build_langfuse(False)
    for one in document["observations"][1:]:
        one["input"] = given
    (found,) = read_json(tmp_path, document).sessions
    assert [one.arguments for one in found.responses] == ["", "", ""]
