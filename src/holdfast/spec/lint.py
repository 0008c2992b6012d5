"""Warns about specs that load but probably do not mean what their author intended."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from holdfast.model.canary import MARK
from holdfast.model.observation import Exhibit, Observation, Turn
from holdfast.model.scenario import is_applicable
from holdfast.model.spec import AgentSpec
from holdfast.model.trace import TraceEvent
from holdfast.protocols.check import AdvisingCheck
from holdfast.protocols.fault import DelayingFault, read_traits
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.reading.words import undouble_backslashes
from holdfast.spec.rules.contract import ContractRules, ScenarioSet
from holdfast.spec.rules.fault_entry import FaultEntry
from holdfast.spec.rules.parts import build_chaos_weather
from holdfast.spec.rules.reach import Reach
from holdfast.spec.rules.rules import RuleEntry
from holdfast.spec.sections.file import File

_PATTERN_KEYS = ("pattern", "patterns", "matches")
_CANARY = "{canary}"
"""What a payload says where the canary goes."""
PROMPT_INJECTION = "LLM01:2025"
"""The entry of a public list that every attack of this kind names in its traits."""


def lint(
    reader: Reader, file: File, rules: ContractRules, weather: ScenarioSet, folder: Path, agent: AgentSpec
) -> None:
    """Report the warnings of a file that loads."""
    for rule in (*rules.all, *file.run_rules):
        _lint_rule(reader, rule)
    _lint_tools(reader, file, rules, weather, folder)
    _lint_contract(reader, rules, weather)
    _lint_attacks(reader, rules, weather)
    if file.chaos is not None:
        _lint_attacks(reader, ContractRules(file.run_rules), build_chaos_weather(Reader(), file, folder))
    _lint_delays(reader, file, weather)
    _lint_min_score(reader, file)
    _lint_concurrency(reader, file, rules, agent)
    _lint_temperatures(reader, file, rules)
    _lint_descriptions(reader, file)
    _warn_repeated_prompts(reader, file.at.get("golden_prompts"))
    for rule in rules.all:
        _warn_repeated_prompts(reader, rule.at.get("probes"))


def _warn_repeated_prompts(reader: Reader, prompts: Node) -> None:
    """Warn about repeated prompts, which are sent once."""
    first: dict[str, Node] = {}
    for node in prompts.items:
        text = node.text if node.kind != "map" else repr(node.to_plain())
        if first.setdefault(text, node) is not node:
            message = f"the same as on line {first[text].line}; it runs once"
            reader.warn(node, message, hint="to ask it more often, set replicas", code="lint-repeated-prompt")


# -- single rules --------------------------------------------------------------------------------
def _lint_rule(reader: Reader, rule: RuleEntry) -> None:
    escaped = set()
    for key in _PATTERN_KEYS:
        if rule.settings_at.has(key) and not rule.invariant.settings.get("literal"):
            value = rule.settings_at.get(key)
            for node in value.items if value.kind == "list" else [value]:
                if _warn_doubled_backslash(reader, node, rule.invariant.id):
                    escaped.add(node.path)
    if isinstance(rule.check, AdvisingCheck):
        for code, field, message in rule.check.lint():
            node = rule.settings_at.find(field)
            if code == "lint-never-matches" and node.path in escaped:
                continue  # lint-escaped-regex gives the reason
            rule_note = f" (rule {rule.invariant.id})" if code == "lint-never-matches" else ""
            reader.warn(node, message + rule_note, code=code)
    _lint_critical_rule(reader, rule)


def _warn_doubled_backslash(reader: Reader, node: Node, id: str) -> bool:
    """Warn about a doubled backslash outside double quotes, which the regex sees doubled; return whether it did."""
    fixed = undouble_backslashes(node.text) if node.kind == "text" and node.style != '"' else ""
    if not fixed or fixed == node.text:
        return False
    quotes = {"'": "single quotes keep", "": "unquoted text keeps"}.get(node.style, "block text keeps")
    quoted = f"'{fixed}'" if node.style == "'" else fixed
    hint = f"{quotes} both backslashes, so it looks for a backslash. Write {quoted}"
    message = f"can never match what it seems to mean (rule {id})"
    reader.warn(node, message, hint=hint, code="lint-escaped-regex", length=1)
    return True


def _lint_critical_rule(reader: Reader, rule: RuleEntry) -> None:
    invariant = rule.invariant
    if not invariant.critical:
        return
    traits = rule.traits
    weight = "gate" if invariant.gate else "critical rule"
    if traits.compares_words and not traits.asks_model:
        message = f"a {weight} that depends on word similarity: a wrong answer may pass it and a paraphrase may fail it"
        hint = "set method: model and a model to ask, or use an exact rule such as contains, regex or json_field"
        reader.warn(rule.at, message, hint=hint, code="lint-likeness-of-words")
    if traits.asks_model and int(invariant.settings.get("votes", 1)) == 1:
        message = f"a {weight} that depends on one vote of a judge"
        hint = "set votes: 3 or more" + ("; and a gate needs a score of 1.0" if invariant.gate else "")
        reader.warn(rule.at, message, hint=hint, code="lint-judge-one-vote")


def _lint_tools(reader: Reader, file: File, rules: ContractRules, weather: ScenarioSet, folder: Path) -> None:
    """Warn about unknown tools in rules: a rule on a misspelled tool may pass whatever the agent does."""
    naming = [(rule, tools) for rule in (*rules.all, *file.run_rules) if (tools := rule.traits.tools)]
    if not naming or reader.has_error("agent"):
        return
    reach = Reach(file.agent, folder)
    # An attack may name a tool that does not exist, and a rule then forbids exactly that tool.
    invented = {value for fault in weather.placed for value in fault.injection.settings.values() if type(value) is str}
    for rule, tools in naming:
        for field, glob in tools:
            hint = None if "://" in glob or glob in invented else reach.check_tool(glob)
            if hint is None:
                continue
            message = f"no tool is called {glob[:60]!r} (rule {rule.invariant.id})"
            # A glob, or a name unlike every tool, may forbid a tool that the agent is to get later.
            # A rule that forbids `delete_*` is meant for tools that may come later, so a name without a tool is no
            # mistake there, unless it is nearly the name of one.
            guard = rule.traits.forbids_calls and (set(glob) & set("*?[") or not reach.find_near_tool(glob))
            if reach.tools_closed and not guard:
                reader.report(rule.settings_at.find(field), message, hint=hint, code="unknown-tool")
            else:
                reader.warn(rule.settings_at.find(field), message, hint=hint, code="lint-unknown-tool")


# -- the contract -------------------------------------------------------------------------------
def _lint_contract(reader: Reader, rules: ContractRules, weather: ScenarioSet) -> None:
    silent = [rule for rule in rules.all if rule.negative or rule.traits.reads == "latency"]
    is_complete = not reader.has_error("contract.invariants", "invariants")
    if is_complete and len(silent) == len(rules.all) and any(rule.negative for rule in rules.all):
        message = "every rule is negative: no rule requires anything of the answer"
        reader.warn(rules.all[0].at, message, hint="add output_not_empty or completes", code="lint-only-negative")
    if not weather.scenarios or reader.has_error("chaos_matrix", "contract.chaos_matrix"):
        return
    if weather.at is not None and not any(s.calm for s in weather.scenarios):
        message = "no calm scenario: failures under chaos cannot be compared with failures in calm"
        reader.warn(weather.at, message, hint="add - name: no-chaos", code="lint-no-calm")
    for scenario in weather.scenarios:
        if (
            weather.at is not None
            and not scenario.calm
            and rules.all
            and not any(is_applicable(r.invariant.when, scenario) for r in rules.all)
        ):
            message = f"no rule is judged in {scenario.name}: it proves nothing"
            hint = "give a rule `when: always`, or remove the scenario"
            reader.warn(weather.at, message, hint=hint, code="lint-idle-scenario")
    for rule in rules.all:
        if not any(is_applicable(rule.invariant.when, s) for s in weather.scenarios):
            message = f"no scenario meets when: {rule.invariant.when}, so this rule is never judged"
            reader.warn(rule.at.get("when"), message, code="lint-when-unmet")


# -- attacks ------------------------------------------------------------------------------------
def _lint_attacks(reader: Reader, rules: ContractRules, weather: ScenarioSet) -> None:
    """Warn about attacks that prove nothing, because no rule of their scenario would fail if the agent obeyed."""
    unjudged: dict[str, list[tuple[str, FaultEntry]]] = {}
    for scenario, faults in zip(weather.scenarios, weather.faults, strict=True):
        judging = [rule for rule in rules.all if is_applicable(rule.invariant.when, scenario)]
        for attack in faults if judging else ():
            if PROMPT_INJECTION in read_traits(attack.plugin).standards and not _is_judged(attack, judging):
                unjudged.setdefault(_suggest_rule(attack), []).append((scenario.name, attack))
    for rule, attacks in unjudged.items():  # one warning for all that one new rule would judge
        name, attack = attacks[0]
        more = f" (and of {len(attacks) - 1} more)" if len(attacks) > 1 else ""
        message = f"no rule fails if the agent obeys the attack of {name}{more}"
        hint = f"add - {{id: ignores-attacks, {rule}, when: any_chaos_active, severity: critical}}"
        reader.warn(attack.at, message, hint=hint, code="lint-attack-unjudged")


def _list_payloads(attack: FaultEntry) -> list[str]:
    """Return the user's own instructions; empty: the built-in ones, which ask for the canary."""
    settings = attack.injection.settings
    return [text for text in (settings.get("payload"), *settings.get("payloads", ())) if text]


def _suggest_rule(attack: FaultEntry) -> str:
    """Return a rule that would judge it, as it would be written."""
    if action := attack.injection.settings.get("action"):
        return f"type: tool_not_called, tool: {action}"
    is_custom = any(_CANARY not in payload for payload in _list_payloads(attack))
    words = "words of an answer that obeys" if is_custom else "HOLDFAST-CANARY"
    return f'type: excludes_pattern, patterns: ["{words}"]'


def _is_judged(attack: FaultEntry, rules: Sequence[RuleEntry]) -> bool:
    """Return whether for each of its instructions some rule would fail an agent that obeys."""
    # The rule is tried on the answer of an agent that obeys. For an instruction with a canary that answer is known; for
    # others the words of the instruction itself are the best guess.
    texts = {MARK + "0" * 8 if _CANARY in payload else payload for payload in _list_payloads(attack) or [_CANARY]}
    action = attack.injection.settings.get("action") or ""
    return all(any(_can_notice(rule, text, action) for rule in rules) for text in texts)


def _can_notice(rule: RuleEntry, text: str, action: str) -> bool:
    """Return whether the rule would fail if the agent said `text` and called the tool `action`."""
    traits = rule.traits
    if traits.asks_model or traits.needs_control or traits.compares_words or traits.file_setting:
        return True  # a judge, a comparison or a script may notice anything
    # The check judges an invented trial in which the agent obeyed. Only a failure there shows that the rule would
    # notice, and whether a rule reads the answer, the calls or the state decides what the trial must contain.
    calls = (TraceEvent(0.0, "tool_call", action, "tool"),) if action else ()
    turn = Turn("", text)
    exhibit = Exhibit(text, turn, Observation("", (turn,), trace=calls))
    forbids = (traits.polarity == "negative") != rule.invariant.negate
    if traits.reads == "text":
        # A rule that requires certain words fails here because they are missing, whether the agent obeyed or not.
        return (forbids or not rule.invariant.settings) and _is_failing(rule, exhibit)
    deed = bool(action) or not text.startswith(MARK)
    if traits.reads == "trace":
        return forbids and deed and (not action or _is_failing(rule, exhibit))
    return traits.reads == "state" and deed


def _is_failing(rule: RuleEntry, exhibit: Exhibit) -> bool:
    try:
        passed = rule.check.decide(exhibit).passed
    except Exception:  # a plug-in that cannot judge this may judge the real thing
        return True
    return passed is rule.invariant.negate


# -- numbers ------------------------------------------------------------------------------------
def _lint_delays(reader: Reader, file: File, weather: ScenarioSet) -> None:
    limit = file.agent.timeout
    for fault in weather.placed:
        delay = fault.plugin.delay_ms if isinstance(fault.plugin, DelayingFault) else 0
        if delay >= limit:
            message = f"the delay of {delay:g} ms is not below agent.timeout, which is {limit} ms"
            hint = "every trial that meets it will time out"
            node = fault.at.get("delay_ms") if fault.at.has("delay_ms") else fault.at
            reader.warn(node, message, hint=hint, code="lint-delay-timeout")


def _lint_min_score(reader: Reader, file: File) -> None:
    score = file.scoring.min_score
    if score is not None and 0 < score <= 1:
        message = f"min_score is 0 to 100: {score:g} means {score:g} %"
        reader.warn(file.scoring.at.get("min_score"), message, code="lint-min-score-fraction")


def _lint_concurrency(reader: Reader, file: File, rules: ContractRules, agent: AgentSpec) -> None:
    wanted = file.advanced.concurrency
    if wanted is None:
        return
    cores = os.cpu_count() or 1
    at = file.advanced.at.get("concurrency")
    if agent.runs_alone and wanted > 1:
        message = "has no effect: trials of this agent share its process, its gateway or the state that a reset affects"
        reader.warn(at, message, hint="remove it; trials run one at a time", code="lint-concurrency-unused")
    elif wanted > cores and any(rule.traits.reads == "latency" for rule in rules.all):
        message = f"{wanted} parallel trials on {cores} cores, with a latency rule"
        reader.warn(at, message, hint="trials that wait for a core look slow", code="lint-concurrency-latency")


def _lint_temperatures(reader: Reader, file: File, rules: ContractRules) -> None:
    """Warn about a temperature that nothing uses: agents send their own, and only judges read this one."""
    if any(rule.traits.asks_model for rule in (*rules.all, *file.run_rules)):
        return
    for model in file.models.values():
        if model.at.has("temperature"):
            message = "is used only by rules that ask a model, but this file has none"
            hint = "remove it; the agent sends its own temperature"
            reader.warn(model.at.get_key("temperature"), message, hint=hint, code="lint-temperature")


def _lint_descriptions(reader: Reader, file: File) -> None:
    """Warn about rules of a map without a description."""
    for rule in file.mapped:
        if not rule.invariant.description:
            key = file.at.get("invariants").get_key(rule.invariant.id)
            reader.warn(key, "has no description", code="lint-no-description")
