"""A scripted model's file: YAML to rules, with every problem in it at file, line and column."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from holdfast.model.completion import FinishReason
from holdfast.planes.llm.script import Called, Match, Rule, Script
from holdfast.planes.llm.script_text import ROOTS, Pattern, Template, template
from holdfast.planes.llm.script_yaml import Reading, compose, near_hint, scalar

FINISHES: tuple[str, ...] = get_args(FinishReason)
_MATCH = ("prompt", "model", "system", "tool", "result", "turn", "tools")
_RULE = (
    "match",
    "text",
    "tool_calls",
    "delay_ms",
    "token_delay_ms",
    "chunks",
    "finish",
    "usage",
    "status",
    "error",
    "times",
)
_NOT_IN_A_FAILURE = ("text", "tool_calls", "token_delay_ms", "chunks", "finish", "usage")
_OF_TEXT = ("token_delay_ms", "chunks")


def load(path: Path, *, shown: str | None = None, names: tuple[str, ...] = ()) -> Script:
    """The scripted model of a file; SpecError with all that is wrong. `names` are models that it stands for."""
    shown = shown or str(path)
    reading, root = compose(path, shown)
    fields = reading.fields(root, "", ("replies",))
    rules: list[Rule] = []
    if "replies" not in fields:
        reading.error(root, "replies", "missing", hint="replies: a list of rules", code="missing-key")
    else:
        items = reading.items(fields["replies"], "replies")
        rules = [_rule(reading, node, where) for node, where in items]
        _check_order(reading, rules, [node for node, _ in items])
        if not items and not reading.problems:
            reading.error(fields["replies"], "replies", "no rule: the model can say nothing")
    reading.finish()
    exact = [rule.match.model.written for rule in rules if rule.match.model and rule.match.model.exact]
    return Script(shown, tuple(rules), tuple(dict.fromkeys([*names, *exact])))


def _rule(reading: Reading, node: Any, path: str) -> Rule:
    fields = reading.fields(node, path, _RULE)
    if node.id == "mapping":
        _check_rule(reading, node, path, fields)
    has = _Has(reading, fields, path)
    usage = reading.fields(fields["usage"], f"{path}.usage", ("input_tokens", "output_tokens")) if has("usage") else {}
    tokens = _Has(reading, usage, f"{path}.usage")
    return Rule(
        match=_match(reading, fields["match"], f"{path}.match") if has("match") else Match(),
        text=has.template("text"),
        tool_calls=_calls(reading, fields["tool_calls"], f"{path}.tool_calls") if has("tool_calls") else (),
        delay_ms=has.number("delay_ms"),
        token_delay_ms=has.number("token_delay_ms"),
        chunks=has.whole("chunks") or 1,
        finish=_finish(reading, fields["finish"], f"{path}.finish") if has("finish") else None,
        input_tokens=tokens.whole("input_tokens", 0),
        output_tokens=tokens.whole("output_tokens", 0),
        status=has.whole("status", 400, 599),
        error=has.template("error"),
        times=has.whole("times"),
    )


class _Has:
    """The fields of one map: each value, or what stands for its absence."""

    def __init__(self, reading: Reading, fields: Mapping[str, Any], path: str) -> None:
        self._reading = reading
        self._fields = fields
        self._path = path

    def __call__(self, name: str) -> bool:
        return name in self._fields

    def number(self, name: str) -> float:
        return self._reading.number(self._fields[name], f"{self._path}.{name}") if self(name) else 0.0

    def whole(self, name: str, least: int = 1, most: int = 10**12) -> int | None:
        return self._reading.whole(self._fields[name], f"{self._path}.{name}", least, most) if self(name) else None

    def pattern(self, name: str) -> Pattern | None:
        return _pattern(self._reading, self._fields[name], f"{self._path}.{name}") if self(name) else None

    def template(self, name: str) -> Template | None:
        if not self(name):
            return None
        node, path = self._fields[name], f"{self._path}.{name}"
        return _template(self._reading, node, path, self._reading.text(node, path))


def _match(reading: Reading, node: Any, path: str) -> Match:
    fields = reading.fields(node, path, _MATCH)
    has = _Has(reading, fields, path)
    declared: list[tuple[Any, str]] = []
    if has("tools"):
        tools = fields["tools"]
        declared = reading.items(tools, f"{path}.tools") if tools.id == "sequence" else [(tools, f"{path}.tools")]
    return Match(
        prompt=has.pattern("prompt"),
        model=has.pattern("model"),
        system=has.pattern("system"),
        tool=has.pattern("tool"),
        result=has.pattern("result"),
        turn=has.whole("turn"),
        tools=tuple([_pattern(reading, one, where) for one, where in declared]),
    )


def _pattern(reading: Reading, node: Any, path: str) -> Pattern:
    pattern = Pattern(reading.text(node, path))
    wrong = pattern.fault()
    if wrong:
        reading.error(node, path, wrong, code="bad-regex")
    return pattern


def _template(reading: Reading, node: Any, path: str, text: str) -> Template:
    try:
        return template(text)
    except ValueError as unknown:
        name = str(unknown)
        forms = ("prompt", "result", "result.FIELD", "results.TOOL", "arguments.NAME")
        hint = near_hint(name.partition(".")[0], ROOTS) if name.partition(".")[0] not in ROOTS else ""
        message = f"nothing can fill {{{{ {name[:60]} }}}}: expected one of {', '.join(forms)}"
        reading.error(node, path, message, hint=hint, code="bad-template")
        return Template((text,))


def _calls(reading: Reading, node: Any, path: str) -> tuple[Called, ...]:
    return tuple([_call(reading, item, where) for item, where in reading.items(node, path)])


def _call(reading: Reading, node: Any, path: str) -> Called:
    fields = reading.fields(node, path, ("name", "arguments"))
    if "name" not in fields:
        if node.id == "mapping":
            reading.error(node, f"{path}.name", "missing", hint="the tool's name", code="missing-key")
        return Called("", {})
    arguments = fields.get("arguments")
    if arguments is not None and arguments.id != "mapping":
        reading.error(arguments, f"{path}.arguments", "expected a map of the tool's arguments")
        arguments = None
    filled = {} if arguments is None else _free(reading, arguments, f"{path}.arguments")
    return Called(reading.text(fields["name"], f"{path}.name"), filled)


def _free(reading: Reading, node: Any, path: str, depth: int = 0) -> Any:
    """A value of any form, its texts as templates."""
    if not reading.counted(node, path, depth):
        return None
    if node.id == "sequence":
        return [_free(reading, item, where, depth + 1) for item, where in reading.items(node, path)]
    if node.id == "mapping":
        entries = reading.entries(node, path)
        return {name: _free(reading, value, f"{path}.{name}", depth + 1) for name, (_, value) in entries.items()}
    value = scalar(node)
    return _template(reading, node, path, value) if isinstance(value, str) else value


def _finish(reading: Reading, node: Any, path: str) -> FinishReason | None:
    import msgspec

    text = reading.text(node, path)
    if text in FINISHES:
        return msgspec.convert(text, FinishReason)  # type: ignore[no-any-return]  # a Literal is no class
    reading.error(node, path, f"no such reason: {text[:40]!r}", hint=near_hint(text, FINISHES))
    return None


def _check_rule(reading: Reading, node: Any, path: str, fields: Mapping[str, Any]) -> None:
    """What does not go together."""
    if "status" in fields:
        for name in _NOT_IN_A_FAILURE:
            if name in fields:
                reading.error(fields[name], f"{path}.{name}", "a rule with a status says nothing but its error")
    elif "error" in fields:
        hint = "status: the HTTP status of the failure, such as 429"
        reading.error(fields["error"], f"{path}.error", "an error needs a status", hint=hint)
    elif "text" not in fields and "tool_calls" not in fields:
        hint = 'give text, tool_calls, or status; an empty answer is text: ""'
        reading.error(node, path, "the rule says nothing", hint=hint, code="missing-key")
    for name in _OF_TEXT:
        if name in fields and "text" not in fields and "status" not in fields:
            reading.error(fields[name], f"{path}.{name}", "there is no text to send piece by piece")


def _check_order(reading: Reading, rules: list[Rule], nodes: list[Any]) -> None:
    """A rule behind one that fits everything would never be read."""
    first = next((at for at, rule in enumerate(rules) if _fits_all(rule)), None)
    if first is not None and first + 1 < len(rules):
        line = nodes[first].start_mark.line + 1
        message = f"never used: the rule on line {line} fits every request"
        hint = "put it last, or give it a match or times"
        reading.error(nodes[first + 1], f"replies[{first + 1}]", message, hint=hint, code="never-used")


def _fits_all(rule: Rule) -> bool:
    texts = [rule.text, rule.error]
    plain = all(text is None or text.always for text in texts) and not rule.tool_calls
    return rule.match == Match() and rule.times is None and plain
