"""Traces as OpenTelemetry spans."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec.structs import replace
from report_sample import sample

from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.model.run import TracedTrial
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trace import Cost, TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.report.formats.otlp import BATCH, build_requests, build_trial_spans

CALLS = (
    TraceEvent(0.5, "llm_call", "small-1", "llm", 1, duration_ms=100, cost=Cost("small-1-dated", 900, 41, 0.002)),
    TraceEvent(0.7, "tool_call", "look", "tool", 1, duration_ms=10, status=503, error_type="InjectedError",
               input='{"q":1}', output="\ud800", fault="error"),
    TraceEvent(0.8, "http_call", "POST https://x.example/p", "http", 1, retry=2, status=200),
)  # fmt: skip
TRACED = TracedTrial(
    Trial("0123456789ab", "contract", Scenario("down"), Task(("q",))),
    Observation("0123456789ab", (Turn("q", None, ending="crashed"),), (FaultMet(0, "tool", "look", "error", 1),),
                trace=CALLS, duration_ms=1500, at=1_700_000_000.0),
    (Verdict("0123456789ab", "rule", "fail", 0.0, "because"),),
)  # fmt: skip


def attributes(thing: dict[str, Any]) -> dict[str, Any]:
    return {a["key"]: next(iter(a["value"].values())) for a in thing["attributes"]}


def spans() -> list[dict[str, Any]]:
    (line,) = build_requests(sample(), [TRACED])
    (resource,) = json.loads(line)["resourceSpans"]
    found: list[dict[str, Any]] = resource["scopeSpans"][0]["spans"]
    return found


def test_the_agent_is_the_root_and_verdicts_are_its_events() -> None:
    root, *calls = spans()
    assert root["name"] == "invoke_agent Finance Agent Contract"
    assert "parentSpanId" not in root
    assert all(call["parentSpanId"] == root["spanId"] for call in calls)
    assert (root["startTimeUnixNano"], root["endTimeUnixNano"]) == ("1700000000000000000", "1700000001500000000")
    assert root["status"]["code"] == 2
    assert attributes(root)["holdfast.fault"] == "error"
    (event,) = root["events"]
    assert event["name"] == "gen_ai.evaluation.result"
    assert attributes(event) == {
        "gen_ai.evaluation.name": "rule", "gen_ai.evaluation.score.value": 0.0,
        "gen_ai.evaluation.score.label": "fail", "gen_ai.evaluation.explanation": "because",
    }  # fmt: skip


def test_calls_follow_the_conventions() -> None:
    _, chat, tool, http = spans()
    assert chat["name"] == "chat small-1"
    assert attributes(chat)["gen_ai.operation.name"] == "chat"
    assert attributes(chat)["gen_ai.request.model"] == "small-1"
    assert attributes(chat)["gen_ai.usage.input_tokens"] == "900"
    assert chat["status"] == {}
    assert tool["name"] == "execute_tool look"
    assert attributes(tool)["gen_ai.tool.name"] == "look"
    assert attributes(tool)["holdfast.fault"] == "error"
    assert attributes(tool)["error.type"] == "InjectedError"
    assert tool["status"] == {"code": 2, "message": "503 InjectedError"}
    assert attributes(http)["url.full"] == "https://x.example/p"
    assert attributes(http)["holdfast.retry"] == "2"
    assert int(tool["endTimeUnixNano"]) - int(tool["startTimeUnixNano"]) == 10_000_000


def test_ids_are_hex_unique_and_the_same_every_time() -> None:
    found = spans()
    assert found == spans()
    assert all(re.fullmatch("[0-9a-f]{32}", s["traceId"]) and re.fullmatch("[0-9a-f]{16}", s["spanId"]) for s in found)
    assert len({s["spanId"] for s in found}) == len(found)
    other = build_trial_spans(replace(sample(), id="0008"), TRACED)
    assert other[0]["traceId"] != found[0]["traceId"]  # the same trial in another run is another trace


def test_a_plane_may_say_which_call_another_was_made_in() -> None:
    nested = (replace(CALLS[0], span_id="a"), replace(CALLS[1], parent_span_id="a"))
    root, outer, inner = build_trial_spans(sample(), replace(TRACED, seen=replace(TRACED.seen, trace=nested)))
    assert outer["parentSpanId"] == root["spanId"]
    assert inner["parentSpanId"] == outer["spanId"]


def test_a_large_run_is_cut_into_requests() -> None:
    feed = iter([TRACED] * (BATCH // 2))
    sizes = [
        len(json.loads(body)["resourceSpans"][0]["scopeSpans"][0]["spans"]) for body in build_requests(sample(), feed)
    ]
    assert sum(sizes) == 4 * (BATCH // 2)
    assert max(sizes) <= BATCH + 4
    assert list(build_requests(sample(), [])) == []
