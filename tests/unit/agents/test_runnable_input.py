"""How LangChain's and LangGraph's own runnables get the prompt: what each asks for, and what cannot be told."""

from __future__ import annotations

import operator
import typing
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from pydantic import BaseModel
from typing_extensions import TypedDict

from holdfast.agents.python.runnable_input import choose_input_form
from holdfast.errors import UserError
from refused import refused

MODEL = FakeListChatModel(responses=["a"])
TEXT: Any = "hello"
INPUT: Any = {"input": "hello"}
MESSAGES: Any = {"messages": [("user", "hello")]}
QUESTION: Any = {"question": "hello"}


def graph(state: Any, **schemas: Any) -> Any:
    builder: Any = StateGraph(state, **schemas)
    builder.add_node("node", lambda given: {})
    builder.add_edge(START, "node")
    return builder.compile()


class More(MessagesState):
    user: str
    left: RemainingSteps


class Question(TypedDict):
    question: str


class OldQuestion(typing.TypedDict):
    """pydantic makes no JSON Schema of it before Python 3.12."""

    question: str


class Odd(typing.TypedDict):
    """Nor of this."""

    messages: Annotated[list[Any], operator.add]
    lock: BaseException


class Answered(TypedDict):
    question: str
    answer: str


class Documents(TypedDict):
    documents: list[str]
    summary: str


class History(TypedDict):
    history: Annotated[list[AnyMessage], add_messages]


class Dicts(TypedDict):
    messages: list[dict[str, str]]


class Model(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages]
    tries: int = 3


class Strict(BaseModel):
    messages: list[BaseMessage]
    user: str


@dataclass
class Data:
    question: str
    answer: str = ""


class Counted(TypedDict):
    count: int


class Speech(Runnable[str, str]):
    def invoke(self, input: str, config: Any = None, **kwargs: Any) -> str:
        return input


class Bare(Runnable[Any, Any]):
    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return input


class AgentExecutor(Runnable[dict[str, Any], dict[str, Any]]):
    """As LangChain's own: its schema is a mapping and names no key."""

    def invoke(self, input: dict[str, Any], config: Any = None, **kwargs: Any) -> dict[str, Any]:
        return {"output": input["input"]}


class Own:
    def invoke(self, given: Any) -> Any:
        return given


def of_text(given: str) -> str:
    return given


def of_question(given: Question) -> str:
    return given["question"]


def of_old_question(given: OldQuestion) -> str:
    return given["question"]


def of_anything(given):  # type: ignore[no-untyped-def]
    return given


@entrypoint()
def task(given: str) -> str:
    return given


@entrypoint()
def bare_task(given):  # type: ignore[no-untyped-def]
    return given


PROMPT = ChatPromptTemplate.from_template("{question}")
CHAT = ChatPromptTemplate.from_messages([MessagesPlaceholder("chat_history"), ("user", "{input}")])
OPTIONAL = ChatPromptTemplate.from_messages([MessagesPlaceholder("chat_history", optional=True), ("user", "{input}")])

TOLD: list[tuple[Any, Any]] = [
    (graph(MessagesState), MESSAGES),
    (graph(More), MESSAGES),
    (graph(Odd), MESSAGES),
    (graph(Model), MESSAGES),
    (graph(Dicts), {"messages": [{"role": "user", "content": "hello"}]}),
    (graph(History), {"history": [("user", "hello")]}),
    (graph(Question), QUESTION),
    (graph(OldQuestion), QUESTION),
    (graph(Answered, input_schema=Question), QUESTION),
    (graph(Data), QUESTION),
    (graph(MessagesState).with_config({"recursion_limit": 5}), MESSAGES),
    (graph(Odd).with_retry(), MESSAGES),
    (graph(OldQuestion) | RunnableLambda(of_anything), QUESTION),
    (task, TEXT),
    (MODEL, TEXT),
    (MODEL | StrOutputParser(), TEXT),
    (Speech(), TEXT),
    (RunnableLambda(of_text), TEXT),
    (RunnableLambda(of_question), QUESTION),
    (RunnableLambda(of_old_question), QUESTION),
    (PROMPT | MODEL, QUESTION),
    (PromptTemplate.from_template("Say {text}") | MODEL, {"text": "hello"}),
    (RunnablePassthrough.assign(context=RunnableLambda(of_question)) | PROMPT | MODEL, QUESTION),
    (OPTIONAL | MODEL, INPUT),
    (ChatPromptTemplate.from_messages([MessagesPlaceholder("messages")]) | MODEL, MESSAGES),
    (AgentExecutor(), INPUT),
    (AgentExecutor().with_config({"tags": ["x"]}), INPUT),
    (Own(), INPUT),
]


def test_a_runnable_gets_what_its_schema_asks_for() -> None:
    for runnable, given in TOLD:
        assert choose_input_form("bot:x", runnable, None)("hello") == given, (runnable, given)


UNTOLD: list[tuple[Any, str]] = [
    (graph(Answered), "a mapping with question, answer"),
    (graph(Documents), "a mapping with documents, summary"),
    (graph(Counted), "a mapping with count"),
    (graph(Strict), "no value is known for user"),
    (graph(dict), "object"),
    (bare_task, "anything"),
    (Bare(), "anything"),
    (RunnableLambda(of_anything), "anything"),
    ({"context": RunnableLambda(of_anything), "question": RunnablePassthrough()} | PROMPT | MODEL, "anything"),
    (graph(MessagesState).map(), "array"),
    (CHAT | MODEL, "no value is known for chat_history"),
    (ChatPromptTemplate.from_template("{a}{b}") | MODEL, "a mapping with a, b"),
]


def test_a_prompt_that_cannot_be_placed_is_refused_with_the_way_out() -> None:
    for runnable, asked in UNTOLD:
        with pytest.raises(UserError) as raised:
            choose_input_form("bot:x", runnable, None)
        assert asked in str(raised.value), (runnable, asked)
        assert "agent.input" in raised.value.hint, (runnable, asked)
        assert raised.value.key == "agent.input", (runnable, asked)


BY_HAND: list[tuple[Any, str, Any]] = [
    (graph(Answered), "question", QUESTION),
    (graph(Documents), "summary", {"summary": "hello"}),
    (graph(More), "user", {"user": "hello"}),
    (graph(History), "history", {"history": [("user", "hello")]}),
    (graph(Dicts), "messages", {"messages": [{"role": "user", "content": "hello"}]}),
    (graph(dict), "question", QUESTION),
    (graph(dict), "messages", MESSAGES),
    (RunnableLambda(of_anything), "text", TEXT),
    (RunnableLambda(of_anything), "messages", MESSAGES),
    (CHAT | MODEL, "input", INPUT),
    (MODEL, "messages", MESSAGES),
    (Own(), "text", TEXT),
    (Own(), "question", QUESTION),
]


def test_it_is_settled_by_hand() -> None:
    for runnable, said, given in BY_HAND:
        assert choose_input_form("bot:x", runnable, said)("hello") == given, (runnable, said, given)


@pytest.mark.parametrize(
    ("runnable", "said"),
    [(graph(MessagesState), "input"), (graph(MessagesState), "text"), (graph(Answered), "qestion")],
)
def test_a_key_that_the_graph_would_drop_is_refused(runnable: Any, said: str) -> None:
    with refused("agent-input-unknown"):
        choose_input_form("bot:x", runnable, said)
