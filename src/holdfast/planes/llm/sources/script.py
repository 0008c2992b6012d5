"""A scripted model: the first rule that matches a conversation decides what the model answers."""

from __future__ import annotations

import re
from typing import Annotated, Any

from msgspec import Meta, Struct

from holdfast.model.codec import digest, encode_canonical, make_storable
from holdfast.model.completion import Completion, Delta, Finish, FinishReason, Pause, Text, ToolCall, Usage
from holdfast.model.shorten import shorten
from holdfast.planes.llm.codecs.loose import dump_json, parse_json
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.sources import script_lists
from holdfast.planes.llm.sources.script_text import (
    ARGUMENTS,
    NAME,
    PATTERN,
    PATTERNS,
    TEMPLATE,
    Missing,
    Pattern,
    Scene,
    TextTemplate,
)
from holdfast.planes.llm.sources.source import (
    Occurrences,
    PassedReply,
    Query,
    SourceReply,
    StoredReply,
    UpstreamDown,
    WrittenReply,
)
from holdfast.protocols.fault import Failed
from holdfast.reading.json_values import build_validator

_MS = Meta(ge=0, lt=1_000_000_000)
"""The limit is far longer than any trial, and short enough for every clock."""
_NOT_JSON = object()
_WORDS = re.compile(r"\s*\S+\s*|\s+")
_TOKENS = re.compile(r"\w+|[^\w\s]")


class NoRule(UpstreamDown):
    """The script has no rule for this request."""

    default_code = "script-no-rule"


class BeyondScript(UpstreamDown):
    """The request demands something that the rule's reply lacks and that every real model would give."""

    default_code = "script-no-reply"


class Match(Struct, frozen=True):
    """The conditions of a rule; None matches anything."""

    prompt: Annotated[Pattern | None, PATTERN] = None
    model: Annotated[Pattern | None, PATTERN] = None
    system: Annotated[Pattern | None, PATTERN] = None
    tool: Annotated[Pattern | None, PATTERN] = None
    """The tool whose result is the latest."""
    result: Annotated[Pattern | None, PATTERN] = None
    turn: Annotated[int | None, Meta(ge=1)] = None
    tools: Annotated[tuple[Pattern, ...], PATTERNS] = ()
    """Tools that the request must declare."""

    def matches(self, scene: Scene) -> bool:
        if self.turn is not None and self.turn != scene.turn:
            return False
        result, request = scene.result, scene.request
        texts = [
            (self.prompt, scene.prompt),
            (self.model, request.model),
            (self.system, scene.system),
            (self.tool, None if result is None else result.name),
            (self.result, None if result is None else result.text),
        ]
        if any(want is not None and (text is None or not want.matches(text)) for want, text in texts):
            return False
        return all(any(want.matches(tool.name) for tool in request.tools) for want in self.tools)


class ScriptedCall(Struct, frozen=True):
    """A call that the model requests. Texts in its arguments are templates."""

    name: Annotated[str, NAME, Meta(description="the tool's name")]
    arguments: Annotated[Any, ARGUMENTS] = {}


class StatedUsage(Struct, frozen=True):
    """The usage that a rule states; a missing number is counted from the texts."""

    input_tokens: Annotated[int | None, Meta(ge=0)] = None
    output_tokens: Annotated[int | None, Meta(ge=0)] = None


class ScriptRule(Struct, frozen=True):
    """One entry of `replies:`."""

    match: Match = Match()
    text: Annotated[TextTemplate | None, TEMPLATE] = None
    tool_calls: tuple[ScriptedCall, ...] = ()
    delay_ms: Annotated[float, _MS] = 0.0
    token_delay_ms: Annotated[float, _MS] = 0.0
    chunks: Annotated[int, Meta(ge=1)] = 1
    """Words per chunk of a stream."""
    finish: FinishReason | None = None
    usage: StatedUsage = StatedUsage()
    status: Annotated[int | None, Meta(ge=400, le=599)] = None
    error: Annotated[TextTemplate | None, TEMPLATE] = None
    times: Annotated[int | None, Meta(ge=1)] = None


class Script:
    """Answers by rules. Used rules are counted per trial, so trials do not influence each other."""

    def __init__(
        self, file: str, rules: tuple[ScriptRule, ...], names: tuple[str, ...] = (), lines: tuple[int, ...] = ()
    ) -> None:
        self._file = file
        self._rules = rules
        self._lines = lines
        """Positions of the rules, if the file is known."""
        self._names = names
        """Models that the script is known to replace."""
        self._used = Occurrences()
        self.forget = self._used.forget

    async def answer(self, query: Query) -> SourceReply:
        """Return the reply of the first matching rule; raise NoRule if none matches."""
        if query.request is None or query.codec is None:
            listed = script_lists.build_list_reply(query, self._names)
            origin, is_scripted = f"script {self._file}", listed.status != 400
            return PassedReply(listed, origin, is_scripted=is_scripted, script=self._file, billed=False)
        scene = Scene(query.request)
        index, completion = self._choose(scene, query.trial)
        rule, script = self._rules[index], (f"{self._file}:{self._lines[index]}" if self._lines else self._file)
        if isinstance(completion, Completion):
            if lacking := _explain_lack(query.request, completion):
                raise BeyondScript(f"script {script}: {lacking}")
            return WrittenReply(completion, f"script {script}", script, billed=False)
        if rule.delay_ms:
            from asyncio import sleep  # expensive to import, and checking a spec reads scripts, too

            await sleep(rule.delay_ms / 1000)
        refusal = query.codec.write_error_reply(completion)
        stored = StoredReply(refusal.status, refusal.headers, (refusal.body,))
        return PassedReply(stored, f"script {script}", script=script, billed=False)

    def _choose(self, scene: Scene, trial: str) -> tuple[int, Completion | Failed]:
        for index, rule in enumerate(self._rules):
            if rule.times is not None and self._used.get_count(trial, index) >= rule.times:
                continue
            if not rule.match.matches(scene):
                continue
            try:
                completion = build_reply(rule, scene)
            except Missing:
                continue
            if rule.times is not None:
                self._used.count_next(trial, index)
            return index, completion
        raise NoRule(f"script {self._file}: {_describe_unmatched(scene)}")


def build_reply(rule: ScriptRule, scene: Scene) -> Completion | Failed:
    """Return the reply of a rule in a conversation; raise Missing if a placeholder stays empty."""
    if rule.status is not None:
        return Failed(rule.error.fill(scene) if rule.error else "scripted failure", status=rule.status)
    text = rule.text.fill(scene) if rule.text else ""
    calls = [_build_call(call, scene, at) for at, call in enumerate(rule.tool_calls)]
    finish: FinishReason = rule.finish or ("tool_calls" if calls else "stop")
    deltas = [
        *_split_text(rule, text, scene.request.stream),
        *calls,
        Finish(finish),
        _count_usage(rule, scene.request, text, calls),
    ]
    return Completion(tuple(deltas), model=scene.request.model)


def count_tokens(*texts: str) -> int:
    """Count words and punctuation marks, which is close enough to a model's count."""
    return sum(1 for text in texts for _ in _TOKENS.finditer(text))


def _split_text(rule: ScriptRule, text: str, stream: bool) -> list[Delta]:
    """Return the text, in chunks if streamed, with its pauses; in a plain reply all pauses come first."""
    words: list[str] = _WORDS.findall(text)
    pieces = ["".join(words[at : at + rule.chunks]) for at in range(0, len(words), rule.chunks)]
    if not stream:
        late = rule.delay_ms + rule.token_delay_ms * max(len(pieces) - 1, 0)
        return [*([Pause(late)] if late else []), *([Text(text)] if text else [])]
    deltas: list[Delta] = [Pause(rule.delay_ms)] if rule.delay_ms else []
    for at, piece in enumerate(pieces):
        if at and rule.token_delay_ms:
            deltas.append(Pause(rule.token_delay_ms))
        deltas.append(Text(piece))
    return deltas


def _build_call(call: ScriptedCall, scene: Scene, at: int) -> ToolCall:
    """Return the call. Its id derives from the conversation, so the same trial always has the same ids."""
    arguments = dump_json(_fill_values(call.arguments, scene)).decode()
    messages = scene.request.messages
    content = encode_canonical(
        make_storable([call.name, arguments, len(messages), messages[-1].text if messages else "", at])
    )
    return ToolCall(f"call_{digest(content, 12)}", call.name, arguments)


def _fill_values(value: Any, scene: Scene) -> Any:
    if isinstance(value, TextTemplate):
        return value.fill_value(scene)
    if isinstance(value, dict):
        return {name: _fill_values(inner, scene) for name, inner in value.items()}
    return [_fill_values(inner, scene) for inner in value] if isinstance(value, list) else value


def _count_usage(rule: ScriptRule, request: ModelRequest, text: str, calls: list[ToolCall]) -> Usage:
    input, output = rule.usage.input_tokens, rule.usage.output_tokens
    if input is None:
        input = sum(
            count_tokens(message.text, *[r.text for r in message.results], *[c.arguments for c in message.tool_calls])
            for message in request.messages
        )
    if output is None:
        output = count_tokens(text, *[call.name + call.arguments for call in calls])
    return Usage(input, output)


def _explain_lack(request: ModelRequest, completion: Completion) -> str:
    """Return a required part of the reply that is missing and that clients rely on; empty if nothing is missing."""
    if request.unscriptable:
        return f"the request demands {' and '.join(request.unscriptable)}, which only a real model can provide"
    if completion.finish in ("length", "content_filter"):
        return ""
    # What no real model would return must not pass for the model's answer: an agent would fail on it only in tests.
    called, forms = [call.name for call in completion.tool_calls], {tool.name: tool.form for tool in request.tools}
    if unsupported := next((name for name in called if forms.get(name)), ""):
        declared = f"{unsupported}, which the request declares as {forms[unsupported]}"
        return f"the rule calls {declared}: a script can call only function tools"
    wanted = request.tool_choice
    if forms and not called and wanted == "required":
        return "the request demands a tool call (tool_choice), but the rule makes none"
    if wanted in forms and wanted not in called:
        return f"the request demands a call of {wanted} (tool_choice), but the rule does not make it"
    return "" if request.schema is None or called else _explain_misfit(request.schema, completion.text)


def _explain_misfit(schema: dict[str, Any], text: str) -> str:
    """Return why a text violates a schema that the provider enforces."""
    value = parse_json(text, _NOT_JSON)
    if value is _NOT_JSON:
        return "the request demands JSON with a schema, but the rule's text is not JSON"
    try:
        wrong = next(iter(build_validator(schema).iter_errors(value)), None)
    except ValueError:  # a schema that Holdfast cannot read is left to the provider
        return ""
    return f"the rule's text does not follow the request's schema: {shorten(wrong.message)}" if wrong else ""


def _describe_unmatched(scene: Scene) -> str:
    after = f", after a result of {scene.result.name}" if scene.result else ""
    return f"no rule matches turn {scene.turn} of the prompt {shorten(scene.prompt)!r}{after}"
