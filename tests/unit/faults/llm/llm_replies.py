"""Replies of a model as they are on the wire, for tests of faults."""

from __future__ import annotations

from holdfast.model.completion import Completion, Finish, Text, ToolCall, Usage

BILL = Usage(30, 12)
CHUNKS = (Text("The total"), Text(" is 42"), Text(", and not"), Text(" a cent more."))
SAID = Completion((*CHUNKS, Finish("stop"), BILL), model="gpt-4o-2024-08-06")
CALLED = ToolCall("call_1", "find_item", '{"name": "kettle", "limit": 3}')
ASKED = Completion((CALLED, Finish("tool_calls"), BILL), model="gpt-4o")
BOTH = Completion((*CHUNKS, CALLED, Finish("tool_calls"), BILL))
