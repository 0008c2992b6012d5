"""`agent:`, `agents:` and the prompts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Struct

from holdfast.model.spec import AgentIsolation, ToolRef, UsageLimits
from holdfast.reading.durations import AgentTimeout, Written
from holdfast.reading.fields import about
from holdfast.reading.node import Node
from holdfast.spec.sections.forms import Code, OneOrMoreTools, Tool

AgentType = Literal["http", "python", "langchain", "command", "cli", "snapshot", "paragon"]


class DialogueEntry(Struct, frozen=True, kw_only=True):
    """One question of a program at its terminal, and the answer to type."""

    at: Node
    expect: Annotated[str, about("The text to wait for, without colours.", min_length=1)]
    type: Annotated[Written, about("The answer to type, followed by Enter. {prompt} is the prompt.")] = ""


class AgentSection(Struct, frozen=True, kw_only=True):
    """The agent under test."""

    at: Node
    type: Annotated[AgentType, about("The kind of agent; cli is an alias of command.")] = "http"
    endpoint: Annotated[str, about("A URL, or module:attribute for a Python agent.", min_length=1)] = ""
    method: Annotated[Literal["POST", "GET", "PUT", "PATCH", "DELETE"], about("The HTTP method.")] = "POST"
    request_template: Annotated[str | None, about("The request's body, with {prompt}, {field} and {messages}.")] = None
    response_path: Annotated[str | None, about("Where the answer is: JSONPath or dotted.", min_length=1)] = None
    query_params: Annotated[dict[str, Written], about("Parameters of the URL.")] = {}
    headers: Annotated[dict[str, Written], about("Headers of the request.")] = {}
    parse_structured_input: Annotated[bool, about("A prompt of `key: value` lines also fills {key}.")] = True
    keep_alive: Annotated[
        bool | None,
        about("Whether to reuse connections between requests. Default: true, false if there is a reset."),
    ] = None
    timeout: Annotated[AgentTimeout, about("The time limit of one turn.")] = 30_000
    reset_endpoint: Annotated[str | None, about("POSTed before every trial; may be relative.", min_length=1)] = None
    reset_function: Annotated[Code | None, about("Called before every trial.")] = None
    isolation: Annotated[AgentIsolation, about("How trials are isolated from each other.")] = "fresh"
    input: Annotated[
        str | None,
        about(
            "How a LangChain runnable gets the prompt: messages, input, text, or another key of its input; "
            "default: as its input schema asks.",
            min_length=1,
        ),
    ] = None
    tools: Annotated[tuple[Tool, ...], about("The agent's tools, for tool_faults.")] = ()
    tool_registry: Annotated[Code | None, about("A mapping of name to callable that holds the tools.")] = None
    llm: Annotated[OneOrMoreTools, about("The agent's model functions, for llm_faults.")] = ()
    env: Annotated[dict[str, Written], about("Environment variables of the agent.")] = {}
    simulate: Annotated[
        Literal["answer"] | None, about("Apply tool and model faults to the answer of a running HTTP agent.")
    ] = None
    command: Annotated[str | None, about("The command that starts the agent, run by sh -c.", min_length=1)] = None
    binary: Annotated[str | None, about("The program that starts the agent, run without a shell.", min_length=1)] = None
    args: Annotated[tuple[Written, ...], about("Arguments of binary.")] = ()
    prompt: Annotated[
        Literal["stdin", "arg", "env", "file", "messages"],
        about("How a command gets the prompt; messages: the conversation so far as JSON, on stdin."),
    ] = "stdin"
    dir: Annotated[str | None, about("A folder that a sandboxed agent sees read-only in /agent.", min_length=1)] = None
    answer_file: Annotated[str | None, about("The file with a command's answer; default: stdout.", min_length=1)] = None
    limits: Annotated[UsageLimits | None, about("The limits of one trial.")] = None
    ready: Annotated[
        Written | None,
        about(
            "When a started HTTP agent is ready, within 60 s: a URL that answers below 500, a port, or text that it "
            "prints. Default: its port accepts connections."
        ),
    ] = None
    spares: Annotated[
        int | None, about("Spare instances of a started HTTP agent; default: one per concurrent trial.", ge=0)
    ] = None
    gateway: Annotated[bool, about("The running agent was started with the variables of `holdfast gateway`.")] = False
    mcp_config: Annotated[str | dict[str, Any] | None, about("The agent's MCP servers: a file, or inline.")] = None
    sandbox: Annotated[bool, about("Run the agent in a sandbox.")] = False
    dialogue: Annotated[
        tuple[DialogueEntry, ...],
        about("Gives a command a terminal: the questions to expect and the answers to type."),
    ] = ()
    nested_sandbox: Annotated[bool, about("Let a sandboxed agent open its own sandbox; weakens the isolation.")] = False
    programs: Annotated[
        tuple[str, ...],
        about("More programs of this machine to show in the sandbox, by name or path.", examples=[["pytest", "cargo"]]),
    ] = ()
    snapshot: Annotated[str | None, about("The name of a stored agent in agents:.")] = None
    model: Annotated[str | None, about("The model of a hosted agent in models:.")] = None

    @property
    def kind(self) -> Literal["http", "python", "langchain", "command", "snapshot", "paragon"]:
        return "command" if self.type == "cli" else self.type

    @property
    def is_python(self) -> bool:
        return self.type in ("python", "langchain")

    @property
    def launched(self) -> bool:
        """Whether Holdfast starts it as a program."""
        return self.command is not None or self.binary is not None

    @property
    def is_started_by_us(self) -> bool:
        """Whether planes outside its process can intercept its calls."""
        return self.launched or self.gateway or self.kind in ("command", "snapshot", "paragon")

    @property
    def code(self) -> tuple[ToolRef, ...]:
        """Every callable that the section names."""
        references = [self.endpoint if self.is_python else "", self.tool_registry or "", self.reset_function or ""]
        return (*(ToolRef(path) for path in references if path), *self.tools, *self.llm)
