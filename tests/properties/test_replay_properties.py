"""Whatever JSON somebody hands in, an adapter gives sessions or says what it left out: it never breaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from example_counts import examples
from holdfast.errors import UserError
from holdfast.replay.formats import FORMATS, import_file
from holdfast.replay.session_file import dump_session
from holdfast.spec.rules.replays import read_sessions

KEYS = (
    "id", "input", "inputs", "outputs", "output", "messages", "role", "content", "parts", "type", "text", "name",
    "run_type", "child_runs", "parent_run_id", "error", "start_time", "end_time", "runs", "data", "traces", "trace",
    "observations", "traceId", "level", "statusMessage", "startTime", "timestamp", "htmlPath", "context", "trace_id",
    "span_id", "attributes", "input.value", "openinference.span.kind", "llm.input_messages", "message", "tool_calls",
    "function", "tool_call_id", "kwargs", "resourceSpans", "scopeSpans", "spans", "spanId", "parentSpanId", "key",
    "value", "stringValue", "arrayValue", "kvlistValue", "values", "intValue", "events", "status", "code", "body",
    "startTimeUnixNano", "gen_ai.input.messages", "gen_ai.tool.name", "gen_ai.operation.name", "tool_responses", "tool",
    "response", "latency_ms", "sessions", "expected_failure", "history", "question", "tool.name", "status_code",
)  # fmt: skip
WORDS = (
    "user", "human", "assistant", "tool", "tool_call", "tool_call_response", "chain", "llm", "TOOL", "GENERATION",
    "SPAN", "ERROR", "LLM", "AGENT", "execute_tool", "chat", "invoke_agent", "2026-11-10T12:00:00Z", "1794225600000",
    "hello", '[{"role": "user", "content": "x"}]', "503", "nan", "inf", "1e400", "gen_ai.user.message", "",
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(WORDS)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=15,
)
FIELDS = st.dictionaries(st.sampled_from(KEYS), DOCUMENTS, max_size=8)
SHAPES: dict[str, st.SearchStrategy[Any]] = {
    "langsmith": FIELDS.map(lambda more: {"id": "r", **more, "run_type": "chain"}),
    "otlp": st.lists(FIELDS, max_size=4).map(lambda spans: {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}),
    "langfuse": st.tuples(FIELDS, st.lists(FIELDS, max_size=3)).map(
        lambda both: {**both[0], "id": "t", "observations": both[1]}
    ),
    "phoenix": FIELDS.map(lambda more: {**more, "context": {"trace_id": "t", "span_id": "s"}}),
    "jsonl": FIELDS.map(lambda more: {"input": "hello", **more}),
}
"""Documents that are of a format at first sight."""


@pytest.mark.parametrize("format", [None, *(name for name in FORMATS if name != "holdfast")])
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), lines=st.booleans())
def test_no_document_breaks_an_adapter(
    tmp_path_factory: pytest.TempPathFactory, format: Any, data: st.DataObject, lines: bool
) -> None:
    one = SHAPES.get(format, DOCUMENTS)
    document = data.draw(one | st.lists(one, min_size=1, max_size=3) | DOCUMENTS)
    folder = tmp_path_factory.mktemp("traces")
    path = folder / ("traces.jsonl" if lines else "traces.json")
    each = document if lines and isinstance(document, list) else [document]
    path.write_text("\n".join(json.dumps(one) for one in each), encoding="utf-8")
    try:
        found = import_file(path, format)
    except UserError:
        return
    for one in found.sessions:
        assert_kept(folder / "session.yaml", dump_session(one), one.id)


def assert_kept(path: Path, text: str, id: str) -> None:
    path.write_text(text, encoding="utf-8")
    (read,) = read_sessions(path)
    assert read.turns
    assert read.id == id or "[masked]" in read.id
