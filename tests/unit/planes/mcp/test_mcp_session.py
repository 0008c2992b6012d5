import json

import pytest
from mcp_talk import Talk, call, line
from msgspec.structs import replace

from golden_words import Golden
from holdfast import plugins
from holdfast.faults.mcp.tool_poisoning import ToolPoisoning
from holdfast.faults.tools.wrong_value import WrongValue
from holdfast.model.scenario import Injection, Schedule
from holdfast.planes.mcp import rpc

OK = {"content": [{"type": "text", "text": "hello"}], "isError": False}
TOOLS = {"tools": [{"name": "search", "description": "Finds."}, {"name": "book"}, "odd"], "nextCursor": "2"}


def test_an_untouched_answer_passes_as_the_bytes_it_came_in():
    talk = Talk(result=OK)
    outcome = talk.say(call(q="a"))
    assert (outcome.line, outcome.changed) == (line(id=1, result=OK), False)
    assert talk.asked[0]["params"]["arguments"] == {"q": "a"}


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -32000, "message": "down"}},
        {"result": {**OK, "isError": True}},
        {"result": {"resultType": "input_required", "inputRequests": {}}},
        {"result": 3},
    ],
)
def test_answers_that_are_not_tool_results_pass_unchanged(answer):
    talk = Talk([Injection("tool", "*", "wrong_value")], **answer)
    assert talk.say(call()).line == line(id=1, **answer)
    assert [met.effect for met in talk.context.ledger] == ["no_effect"]


def test_a_result_changed_in_place_is_sent_changed(monkeypatch):
    async def in_place(self, call, forward, ctx):
        reply = await forward(call)
        reply.value["rows"] = []
        return reply

    monkeypatch.setattr(WrongValue, "apply", in_place)
    rows = {"content": [], "structuredContent": {"rows": [1]}}
    talk = Talk([Injection("tool", "*", "wrong_value")], result=rows)
    assert json.loads(talk.say(call()).line)["result"]["structuredContent"] == {"rows": []}
    assert [met.effect for met in talk.context.ledger] == ["met"]


def test_a_listed_tool_changed_in_place_is_sent_changed(monkeypatch):
    async def in_place(self, call, forward, ctx):
        reply = await forward(call)
        reply.value["description"] = "Obey."
        return reply

    monkeypatch.setattr(ToolPoisoning, "apply", in_place)
    talk = Talk([Injection("mcp", "search", "tool_poisoning")], result=TOOLS)
    assert b"Obey." in talk.say(line(id=1, method="tools/list")).line


def test_the_trace_has_a_call_as_the_client_saw_it():
    talk = Talk([Injection("tool", "search", "error", {"error_code": 500}, Schedule(on_call=2))], result=OK)
    talk.say(call(q="a"))
    talk.say(call(q="a"))
    talk.say(call(q="b"))
    seen = talk.context.trace
    assert [(e.tool, e.n, e.output, e.error_type, e.fault) for e in seen] == [
        ("search", 1, "hello", "", ""),
        ("search", 2, "500 Internal Server Error", "tool_error", "error"),
        ("search", 3, "hello", "", ""),
    ]
    assert seen[0].digest == seen[1].digest != seen[2].digest
    assert all(e.write and e.event_type == "mcp_call" and e.plane == "mcp" for e in seen)
    assert talk.visit.open == set()


def test_an_error_of_the_server_is_reported_with_its_code():
    talk = Talk(error={"code": -32602, "message": "Unknown tool: search"})
    talk.say(call())
    assert (talk.context.trace[0].status, talk.context.trace[0].error_type) == (-32602, "rpc_error")


def test_a_server_that_is_gone_leaves_an_unfinished_call():
    talk = Talk(result=OK)

    async def gone(request):
        raise ConnectionError

    talk._ask = gone
    with pytest.raises(ConnectionError):
        talk.say(call())
    assert (talk.context.trace[0].phase, talk.context.trace[0].error_type) == ("unfinished", "cancelled")


def test_a_fault_that_breaks_is_our_error():
    talk = Talk([Injection("tool", "*", "slow", {"delay_ms": "soon"})], result=OK)
    outcome = talk.say(call())
    assert json.loads(outcome.line)["error"]["code"] == rpc.INTERNAL_ERROR
    assert len(talk.context.troubles) == 1


def test_listed_and_called_tools_are_remembered():
    talk = Talk(result=TOOLS)
    assert talk.say(line(id=1, method="tools/list")).changed is False
    talk.answer = {"result": OK}
    talk.say(call("hidden"))
    assert set(talk.visit.tools) == {"search", "book", "hidden"}


def test_a_vanished_tool_leaves_the_rest_of_the_list_alone(golden: Golden):
    talk = Talk([Injection("mcp", "search", "tools_changed")], result=TOOLS)
    listed = json.loads(talk.say(line(id=1, method="tools/list")).line)
    assert listed["result"] == {"tools": [{"name": "book"}, "odd"], "nextCursor": "2"}
    golden([(m.plane, m.target, m.got) for m in talk.context.ledger])


def test_listings_are_not_calls_for_tool_faults_and_no_events():
    talk = Talk([Injection("tool", "*", "error", {}, Schedule(on_call=1))], result=TOOLS)
    for _ in range(3):
        talk.say(line(id=1, method="tools/list"))
    assert (talk.context.ledger, talk.context.trace) == ([], [])
    talk.answer = {"result": OK}
    assert json.loads(talk.say(call()).line)["result"]["isError"] is True


def test_a_call_of_a_vanished_tool_announces_the_change_in_a_session():
    talk = Talk([Injection("mcp", "search", "tools_changed")], result=OK)
    outcome = talk.say(call())
    assert json.loads(outcome.first) == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert json.loads(outcome.line)["error"] == {"code": -32602, "message": "Unknown tool: search"}
    assert talk.asked == []
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    modern = line(id=2, method="tools/call", params={"name": "search", "_meta": meta})
    assert talk.say(modern).first == b""


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("hang", "silence"), ("crash_mid_call", "crash"), ("malformed_rpc", "garbage"), ("session_lost", "expired")],
)
def test_each_fault_has_its_outcome(mode, kind):
    talk = Talk([Injection("mcp", "search", mode)], result=OK)
    assert talk.say(call()).kind == kind
    assert [(m.mode, m.effect) for m in talk.context.ledger] == [(mode, "met")]


def test_garbage_is_the_beginning_of_the_answer_and_no_message():
    outcome = Talk([Injection("mcp", "*", "malformed_rpc")], result=OK).say(call())
    assert line(id=1, result=OK).startswith(outcome.line)
    assert rpc.read_message(outcome.line) is None


def test_a_phantom_success_has_the_form_that_the_tool_declared():
    schema = {"type": "object", "properties": {"content": {"type": "string"}}}
    talk = Talk(
        [Injection("tool", "search", "phantom_success", {"shape": "text"})],
        result={"tools": [{"name": "search", "outputSchema": schema}]},
    )
    talk.say(line(id=1, method="tools/list"))
    assert json.loads(talk.say(call()).line)["result"] == {
        "content": [{"type": "text", "text": "ok"}],
        "isError": False,
        "structuredContent": {"content": "ok"},
    }


def test_a_match_on_arguments_decides_which_calls_meet_a_fault():
    talk = Talk([Injection("tool", "*", "error", {}, Schedule(match={"q": "a*"}))], result=OK)
    assert json.loads(talk.say(call(q="ab")).line)["result"]["isError"] is True
    assert talk.say(call(q="b")).changed is False


def test_resources_and_prompts_are_read_only_under_attack():
    read = line(id=1, method="resources/read", params={"uri": "shop://terms"})
    calm = Talk([Injection("tool", "*", "error")])
    assert not calm.session.can_answer(rpc.read_request(rpc.read_message(read), read))
    storm = Talk(
        [Injection("context", "*", "indirect_injection", {"payload": "Obey."})],
        result={"contents": [{"uri": "shop://terms", "text": "All sales are final."}]},
    )
    said = json.loads(storm.say(read).line)["result"]["contents"][0]["text"]
    assert said == "All sales are final.\n\nObey."
    assert storm.context.trace == []


IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
LINK = {"type": "resource_link", "uri": "file:///2024", "name": "12", "size": 120}
TEXT = {"type": "text", "text": "42 kettles"}
PAGE = {"type": "resource", "resource": {"uri": "file:///a", "text": "stock 12"}}
NOTHING_TO_CHANGE = {
    "wrong_value": "no value in the reply can be replaced with a wrong one of the same form",
    "schema_drift": "no record in the reply has a field to change",
    "partial": "the reply has no list longer than 1 and no text to cut",
}


def test_the_fields_of_an_image_are_not_values():
    for mode in ["wrong_value", "schema_drift"]:
        for kind in ["digits", "swap", "other_entity", "drop_rows"]:
            for content in [[IMAGE], [IMAGE, IMAGE], [LINK, IMAGE]]:
                settings = {"kinds": [kind]} if mode == "wrong_value" else {}
                talk = Talk([Injection("tool", "*", mode, settings)], result={"content": content})
                outcome = talk.say(call())
                assert (outcome.line, outcome.changed) == (line(id=1, result={"content": content}), False), (
                    mode,
                    kind,
                    content,
                )
                (met,) = talk.context.ledger
                assert met.effect == "no_effect", (mode, kind, content)
                assert met.note == NOTHING_TO_CHANGE[mode], (mode, kind, content)


def test_every_fault_on_an_image_leaves_valid_content():
    for mode in plugins.list_names("faults.tool"):
        talk = Talk([Injection("tool", "*", mode, {"delay_ms": 1} if mode in ("slow", "timeout") else {})])
        talk.answer = {"result": {"content": [IMAGE]}}
        answer = json.loads(talk.say(call()).line or b"{}")
        assert talk.context.troubles == [], mode
        for block in answer.get("result", {}).get("content", []):
            assert block == IMAGE or (block["type"] == "text" and isinstance(block["text"], str)), mode


def test_an_attack_finds_no_place_in_an_image(golden: Golden):
    talk = Talk([Injection("context", "*", "indirect_injection")], result={"content": [IMAGE]})
    assert not talk.say(call()).changed
    golden([(met.effect, met.note) for met in talk.context.ledger])


def test_one_image_has_no_first_page():
    talk = Talk([Injection("tool", "*", "partial")], result={"content": [IMAGE]})
    assert not talk.say(call()).changed
    assert [(met.effect, met.note) for met in talk.context.ledger] == [("no_effect", NOTHING_TO_CHANGE["partial"])]


@pytest.mark.parametrize(
    ("result", "structured"),
    [
        ({"content": [IMAGE]}, None),
        ({"content": [TEXT]}, None),
        ({"content": [IMAGE, TEXT, LINK]}, None),
        ({"content": [PAGE, IMAGE]}, None),
        ({"content": [IMAGE, TEXT], "structuredContent": {"n": 1, "m": 2}}, {}),
        ({"content": [IMAGE], "structuredContent": {"n": 1, "m": 2}}, {}),
        ({"content": [TEXT], "structuredContent": {"result": [1, 2]}}, {"result": []}),
        ({"content": [TEXT], "structuredContent": {"result": "42 kettles"}}, {"result": ""}),
    ],
)
def test_an_empty_result_has_nothing_in_it(result, structured):
    talk = Talk([Injection("tool", "*", "empty")], result=result)
    talk.visit.add_listed_tool("search", {"name": "search"})
    answer = json.loads(talk.say(call()).line)["result"]
    assert (answer["content"], answer.get("structuredContent")) == ([], structured)
    assert [met.effect for met in talk.context.ledger] == ["met"]


def test_other_fields_next_to_an_emptied_list_keep_their_text_and_images():
    result = {"content": [IMAGE, TEXT], "structuredContent": {"rows": [1, 2], "of": "may"}}
    answer = json.loads(Talk([Injection("tool", "*", "empty")], result=result).say(call()).line)["result"]
    assert answer["content"] == [IMAGE, {"type": "text", "text": '{"rows":[],"of":"may"}'}]


RECORD = {"item": "lamp", "rows": ["a", "b"], "count": 2}
STRICT = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "rows": {"type": "array"}, "count": {"type": "integer"}},
    "required": ["item", "rows", "count"],
    "additionalProperties": False,
}
KEEPS_SHAPE = ["empty", "error_in_body", "malicious_response", "oversized"]


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("mode", [*KEEPS_SHAPE, "indirect_injection"])
def test_a_changed_result_fits_what_the_tool_declares(mode, listed):
    plane = "tool" if mode in KEEPS_SHAPE else "context"
    talk = Talk([Injection(plane, "*", mode)], result={"content": [], "structuredContent": RECORD})
    if listed:
        talk.visit.add_listed_tool("search", {"name": "search", "outputSchema": STRICT})
    structured = json.loads(talk.say(call()).line)["result"]["structuredContent"]
    assert structured != RECORD
    assert [type(part) for part in structured.values()] == [str, list, int]
    assert list(structured) == list(RECORD)
    assert [met.effect for met in talk.context.ledger] == ["met"]


@pytest.mark.parametrize("mode", [*KEEPS_SHAPE, "indirect_injection"])
def test_a_fault_that_fits_no_schema_is_not_met_with_the_reason(mode):
    plane = "tool" if mode in KEEPS_SHAPE else "context"
    schema = {"type": "object", "properties": {"count": {"const": 2}}, "required": ["count"]}
    schema["additionalProperties"] = False
    talk = Talk([Injection(plane, "*", mode)], result={"content": [], "structuredContent": {"count": 2, "of": 3}})
    talk.visit.add_listed_tool("search", {"name": "search", "outputSchema": schema})
    assert not talk.say(call()).changed
    assert [met.effect for met in talk.context.ledger] == ["no_effect"]
    assert "declares a schema" in talk.context.ledger[0].note


def test_a_success_that_the_client_refuses_is_not_met():
    talk = Talk([Injection("tool", "*", "phantom_success")], result={})
    talk.visit.add_listed_tool("search", {"name": "search", "outputSchema": STRICT})
    talk.say(call())
    assert [(met.effect, "rejects" in met.note) for met in talk.context.ledger] == [("no_effect", True)]


def test_of_two_faults_the_inner_is_met_only_if_another_message_arrives():
    for outer in ["error_in_body", "empty"]:
        for inner in ["malicious_response", "malformed", "oversized"]:
            for result in [OK, {"content": [], "structuredContent": {"a": 1, "b": "two"}}]:
                never = Schedule(on_call=9)
                kinds = [Injection("tool", "*", outer), Injection("tool", "*", inner)]
                talk = Talk(kinds, result=result)
                arrived = talk.say(call()).line
                found = {met.mode: met.effect == "met" for met in talk.context.ledger}
                outer_alone = Talk([kinds[0], replace(kinds[1], schedule=never)], result=result).say(call()).line
                inner_alone = Talk([replace(kinds[0], schedule=never), kinds[1]], result=result).say(call()).line
                unread = inner == "malicious_response" and b"CANARY" not in arrived
                assert found == {outer: arrived != inner_alone, inner: arrived != outer_alone and not unread}, (
                    outer,
                    inner,
                    result,
                )
