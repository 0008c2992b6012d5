import pytest
from mcp_fault import Firing

from holdfast.faults.mcp.tools_changed import ToolsChanged
from holdfast.protocols.fault import Call, Failed, Reply

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}, "limit": {}}, "required": ["query"]}
TOOL = {"name": "search", "inputSchema": SCHEMA}


def test_the_first_argument_is_listed_by_another_name():
    changed = Firing(ToolsChanged(change="schema"), TOOL).run("mcp_list")["inputSchema"]
    assert changed == {
        **SCHEMA,
        "properties": {"query_value": {"type": "string"}, "limit": {}},
        "required": ["query_value"],
    }
    assert list(TOOL["inputSchema"]["properties"]) == ["query", "limit"]


def test_calls_fail_by_the_old_name_and_pass_by_the_new():
    firing = Firing(ToolsChanged(change="schema"), TOOL)
    firing.run("mcp_list")
    with pytest.raises(Failed, match="'query_value' is required") as raised:
        firing.run("mcp", limit=1, query="a")
    assert raised.value.kind == "schema_changed"
    firing.run("mcp", limit=1, query_value="a")
    assert firing.forwarded[-1].arguments == {"limit": 1, "query": "a"}


def test_a_listing_that_passed_is_remembered_for_the_calls():
    firing = Firing(ToolsChanged(change="schema"), TOOL)
    firing.fault.watch(Call("mcp_list", "search", {}, 1), Reply(TOOL), firing.memory)
    with pytest.raises(Failed, match="'query_value' is required"):
        firing.run("mcp", limit=1, query="a")


def test_a_tool_that_was_never_listed_renames_what_it_is_called_with():
    with pytest.raises(Failed, match="'a_value' is required"):
        Firing(ToolsChanged(change="schema")).run("mcp", a=1)


@pytest.mark.parametrize("tool", [{"name": "search"}, {"name": "search", "inputSchema": {"properties": {}}}, "odd"])
def test_a_tool_without_arguments_has_nothing_to_change(tool):
    firing = Firing(ToolsChanged(change="schema"), tool)
    assert firing.run("mcp_list") is tool
    assert firing.run("mcp") is tool
