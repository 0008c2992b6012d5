"""Runnables of LangGraph and LangChain that are named as the agent themselves. Each asks a real client of a model."""

import os
from typing import Annotated, TypedDict

from langchain_core.messages import AnyMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages

model = ChatOpenAI(model=os.environ["AGENT_MODEL"], max_retries=0)


class Noted(TypedDict):
    """Messages among other keys."""

    messages: Annotated[list[AnyMessage], add_messages]
    notes: list[str]


class Question(TypedDict):
    question: str


class Answered(Question):
    answer: str


def talk(state):
    return {"messages": [model.invoke([("system", "Be brief."), *state["messages"]])]}


async def talk_later(state):
    return {"messages": [await model.ainvoke(state["messages"])], "notes": ["asked"]}


def reply(state):
    return {"answer": model.invoke(state["question"]).text}


def graph_of(state, node, **schemas):
    builder = StateGraph(state, **schemas)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder


chat = graph_of(MessagesState, talk).compile()
noted = graph_of(Noted, talk_later).compile()
question = graph_of(Answered, reply, input_schema=Question).compile()
either = graph_of(Answered, reply).compile()
remembers = graph_of(MessagesState, talk).compile(checkpointer=InMemorySaver())
remembers = remembers.with_config({"configurable": {"thread_id": "only"}})
chain = ChatPromptTemplate.from_messages([("system", "Be brief."), ("user", "{question}")]) | model
loose = RunnableLambda(lambda given: model.invoke(str(given)))


def make_graph(config):
    return chat
