"""What the agent of each framework does in every scenario, as a function and as a server that streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from framework_weather import (
    ANSWER,
    BURST,
    BY_LUCK,
    MODEL,
    PLAIN_WEATHER,
    SERVED_STORIES,
    STREAM_WEATHER,
    TOOL_WEATHER,
    Story,
)  # fmt: skip

SERVED_WEATHER = (*TOOL_WEATHER, *STREAM_WEATHER)


@dataclass(frozen=True)
class Framework:
    """An agent, and what it does in each scenario."""

    agent: str
    """Its file."""
    asked: Mapping[str, Story]
    """As a function, its model's replies plain."""
    streamed: Mapping[str, Story]
    """As a server, its model's replies streamed."""
    crashes_with: str
    """What it prints when a program of it dies of an overloaded model."""
    options: Mapping[str, Any] = field(default_factory=lambda: {"tools": ["agent:search"]})
    """Of the agent as a function."""
    model: Mapping[str, Any] = field(default_factory=lambda: MODEL)

    def __post_init__(self) -> None:
        assert set(self.asked) == {one["name"] for one in PLAIN_WEATHER}
        assert set(self.streamed) == {one["name"] for one in SERVED_WEATHER}


# -- langgraph -------------------------------------------------------------------------------------
LANGGRAPH_ASKED = {
    "calm": Story("answered", ANSWER, "200 200"),
    "burst": BURST,
    "limited": Story("raised", "OpenAIRateLimitError: Error code: 429", "429 429+1 429+2", (1, 2, 3)),
    "overloaded": Story("raised", "OpenAIAPIError: Error code: 503", "503 503+1 503+2", (1, 2, 3)),
    "html": Story("raised", "OpenAIAPIError: Error code: 502", "502 502+1 502+2", (1, 2, 3)),
    # Half a sentence passes as the answer: nothing in the reply says that it is one.
    "silent": Story("answered", "According to search", "200 200", (2,)),
    "no_choices": Story("raised", "IndexError: list index out of range", "200", (1,)),
    # An empty answer, and no exception: only the reply's metadata say why.
    "filtered": Story("answered", "", "200 200", (2,)),
    # Arguments that are not JSON make a call that does not count as one: the graph ends, with an empty answer.
    "malformed": Story("answered", "", "200", (1,)),
    "unknown": Story("answered", ANSWER, "200 200 200", (1,)),
    # The model is told of its mistake as often as the recursion limit allows: 8 steps are 4 calls.
    "unknown_always": Story(
        "raised", "GraphRecursionError: Recursion limit of 8 reached", "200 200 200 200", (1, 2, 3, 4)
    ),
    "hang": Story("raised", "OpenAIConnectionError: Connection error.", "timeout timeout+1 timeout+2", (1, 2, 3)),
    "too_long": Story("raised", "OpenAIInvalidRequestError: Error code: 400", "400", (1,)),
    # An exception of a tool is the agent's: ToolNode tells the model of bad arguments alone.
    "broken_tool": Story("raised", "InjectedError: 503 Service Unavailable", "200", (1,)),
    "hanging_tool": Story("raised", "TimeoutError: search: no answer after 50 ms", "200", (1,)),
    "lying_tool": Story("answered", "According to search, revenue was 2400.", "200 200", (1,)),
    "by_luck": BY_LUCK,
}

LANGGRAPH_STREAMED = {
    **SERVED_STORIES,
    "cut": Story(
        "http_error",
        "langchain_openai.chat_models.base.OpenAIConnectionError: Connection error.",
        "200 200:connection_lost",
        (2,),
    ),
    "half_overloaded": Story(
        "http_error", "openai.APIError: The engine is currently overloaded", "200 200:overloaded", (2,)
    ),
}

LANGGRAPH = Framework(
    agent="with_langgraph.py",
    asked=LANGGRAPH_ASKED,
    streamed=LANGGRAPH_STREAMED,
    crashes_with="langchain_openai.chat_models.base.OpenAIAPIError",
)

# -- openai_agents ---------------------------------------------------------------------------------
OPENAI_AGENTS_ASKED = {
    "calm": Story("answered", ANSWER, "200 200"),
    "burst": BURST,
    "limited": Story("raised", "RateLimitError: Error code: 429", "429 429+1 429+2", (1, 2, 3)),
    "overloaded": Story("raised", "InternalServerError: Error code: 503", "503 503+1 503+2", (1, 2, 3)),
    "html": Story("raised", "InternalServerError: Error code: 502", "502 502+1 502+2", (1, 2, 3)),
    # Half a sentence passes as the answer: nothing in the reply says that it is one.
    "silent": Story("answered", "According to search", "200 200", (2,)),
    # A reply without any output is an answer without any text: no exception.
    "no_choices": Story("answered", "", "200", (1,)),
    "filtered": Story(
        "raised",
        "ModelBehaviorError: Responses stream ended with terminal event `response.incomplete`",
        "200 200",
        (2,),
    ),
    "malformed": Story("answered", ANSWER, "200 200 200", (1,)),
    # A tool that does not exist ends the run; the model is not told.
    "unknown": Story("raised", "ModelBehaviorError: Tool search_v2 not found in agent Analyst", "200", (1,)),
    "unknown_always": Story("raised", "ModelBehaviorError: Tool search_v2 not found in agent Analyst", "200", (1,)),
    "hang": Story("raised", "APIConnectionError: Connection error.", "timeout timeout+1 timeout+2", (1, 2, 3)),
    "too_long": Story("raised", "BadRequestError: Error code: 400", "400", (1,)),
    # An exception of a tool becomes a result that says so.
    "broken_tool": Story("answered", "The data is unavailable right now.", "200 200 200", (1, 2)),
    "hanging_tool": Story("answered", "The data is unavailable right now.", "200 200 200", (1, 2)),
    "lying_tool": Story("answered", "According to search, revenue was 2400.", "200 200", (1,)),
    "by_luck": BY_LUCK,
}

OPENAI_AGENTS_STREAMED = {
    **SERVED_STORIES,
    "cut": Story("http_error", "openai.APIConnectionError: Connection error.", "200 200:connection_lost", (2,)),
    "half_overloaded": Story(
        "http_error",
        "agents.exceptions.ModelBehaviorError: Responses stream ended with terminal event `response.failed`.",
        "200 200:overloaded",
        (2,),
    ),
}

OPENAI_AGENTS_TOOL = {"name": "search", "callable": "agent:look_up"}
"""The function behind the SDK's own tool object."""

OPENAI_AGENTS = Framework(
    agent="with_openai_agents.py",
    asked=OPENAI_AGENTS_ASKED,
    streamed=OPENAI_AGENTS_STREAMED,
    crashes_with="openai.InternalServerError",
    options={"tools": [OPENAI_AGENTS_TOOL], "env": {"OPENAI_AGENTS_DISABLE_TRACING": "1"}},
)

# -- pydantic_ai -----------------------------------------------------------------------------------
PYDANTIC_AI_ASKED = {
    "calm": Story("answered", ANSWER, "200 200"),
    "burst": BURST,
    "limited": Story("raised", "ModelRateLimitError: status_code: 429", "429 429+1 429+2", (1, 2, 3)),
    "overloaded": Story("raised", "ModelOverloadedError: status_code: 503", "503 503+1 503+2", (1, 2, 3)),
    "html": Story(
        "raised",
        "ModelServerError: status_code: 502, model_name: gpt-4o, body: <html>\n",
        "502 502+1 502+2",
        (1, 2, 3),
    ),
    # Half a sentence passes as the answer: nothing in the reply says that it is one.
    "silent": Story("answered", "According to search", "200 200", (2,)),
    "no_choices": Story("raised", "IndexError: list index out of range", "200", (1,)),
    "filtered": Story("raised", "ContentFilterError: Content filter triggered.", "200 200", (2,)),
    # The model is told what is wrong with its call, once; the second time ends the run.
    "malformed": Story("answered", ANSWER, "200 200 200", (1,)),
    "unknown": Story("answered", ANSWER, "200 200 200", (1,)),
    "unknown_always": Story(
        "raised", "UnexpectedModelBehavior: Tool 'search_v2' exceeded max retries count of 1.", "200 200", (1, 2)
    ),
    "hang": Story("raised", "ModelConnectionError: Connection error.", "timeout timeout+1 timeout+2", (1, 2, 3)),
    "too_long": Story("raised", "ModelContextWindowExceededError: status_code: 400", "400", (1,)),
    # An exception of a tool is the agent's: the model never hears of it.
    "broken_tool": Story("raised", "InjectedError: 503 Service Unavailable", "200", (1,)),
    "hanging_tool": Story("raised", "TimeoutError: search: no answer after 50 ms", "200", (1,)),
    "lying_tool": Story("answered", "According to search, revenue was 2400.", "200 200", (1,)),
    "by_luck": BY_LUCK,
}

PYDANTIC_AI_STREAMED = {
    **SERVED_STORIES,
    "cut": Story(
        "http_error", "pydantic_ai.exceptions.ModelConnectionError: Connection error.", "200 200:connection_lost", (2,)
    ),
    # An error inside a reply that began with 200; the exception says 500.
    "half_overloaded": Story(
        "http_error", "pydantic_ai.exceptions.ModelOverloadedError: status_code: 500", "200 200:overloaded", (2,)
    ),
}

PYDANTIC_AI = Framework(
    agent="with_pydantic_ai.py",
    asked=PYDANTIC_AI_ASKED,
    streamed=PYDANTIC_AI_STREAMED,
    crashes_with="pydantic_ai.exceptions.ModelOverloadedError",
)

# -- smolagents ------------------------------------------------------------------------------------
FAILED = "AgentGenerationError: Error while generating output:\n"

SPEAKS_BY_TOOL = {
    "replies": [
        {
            "match": rule.get("match", {}),
            "tool_calls": rule.get("tool_calls") or [{"name": "final_answer", "arguments": {"answer": rule["text"]}}],
        }
        for rule in MODEL["replies"]
    ]
}
"""The model for an agent whose every reply is a call, the last one of `final_answer`."""

SMOLAGENTS_ASKED = {
    "calm": Story("answered", ANSWER, "200 200"),
    "burst": BURST,
    # After the SDK's three attempts smolagents waits two minutes and more before it tries again: it looks hung.
    "limited": Story("timeout", "no answer within 8000 ms", "429 429+1 429+2", (1, 2, 3)),
    "overloaded": Story("raised", f"{FAILED}Error code: 503", "503 503+1 503+2", (1, 2, 3)),
    "html": Story("raised", f"{FAILED}Error code: 502", "502 502+1 502+2", (1, 2, 3)),
    # All it says is in tool calls, its answer too: there is no text to cut, and the cells are unproven.
    "silent": Story("answered", ANSWER, "200 200"),
    "no_choices": Story("raised", f"{FAILED}list index out of range", "200", (1,)),
    # It asks again until its steps are used up, then once more without tools; the answer is empty.
    "filtered": Story("answered", "", "200 200 200 200 200", (2, 3, 4, 5)),
    # Arguments that are not JSON are handed to the tool as they are: `search('{"query":"A')` runs.
    "malformed": Story("answered", ANSWER, "200 200", (1,)),
    "unknown": Story("answered", ANSWER, "200 200 200", (1,)),
    # The answer is the word None.
    "unknown_always": Story("answered", "None", "200 200 200 200 200", (1, 2, 3, 4, 5)),
    "hang": Story("raised", f"{FAILED}Connection error.", "timeout timeout+1 timeout+2", (1, 2, 3)),
    "too_long": Story("raised", f"{FAILED}Error code: 400", "400", (1,)),
    # An exception of a tool is told to the model as a message of the user's, until the steps are used up.
    "broken_tool": Story("answered", "None", "200 200 200 200 200", (1, 2, 3, 4)),
    "hanging_tool": Story("answered", "None", "200 200 200 200 200", (1, 2, 3, 4)),
    "lying_tool": Story("answered", "According to search, revenue was 4020.", "200 200", (1,)),
    "by_luck": BY_LUCK,
}

SMOLAGENTS_STREAMED = {
    **SERVED_STORIES,
    "cut": Story("http_error", f"smolagents.utils.{FAILED}Connection error.", "200 200:connection_lost", (2,)),
    "half_overloaded": Story(
        "http_error", f"smolagents.utils.{FAILED}The engine is currently overloaded", "200 200:overloaded", (2,)
    ),
}

SMOLAGENTS = Framework(
    agent="with_smolagents.py",
    asked=SMOLAGENTS_ASKED,
    streamed=SMOLAGENTS_STREAMED,
    crashes_with="smolagents.utils.AgentGenerationError",
    options={"tools": ["agent:search"], "timeout": 8000},
    model=SPEAKS_BY_TOOL,
)

FRAMEWORKS = {
    "langgraph": LANGGRAPH,
    "openai_agents": OPENAI_AGENTS,
    "pydantic_ai": PYDANTIC_AI,
    "smolagents": SMOLAGENTS,
}
