"""Invariants, in both formats: flat entries of a list, or named entries of a map with `check:`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from msgspec import Struct

from holdfast import plugins
from holdfast.model.scenario import When
from holdfast.model.spec import Aggregation, Invariant, Severity
from holdfast.model.traits import CheckTraits
from holdfast.protocols.check import Check, check_traits
from holdfast.reading.fields import about, list_key_names
from holdfast.reading.node import Node
from holdfast.reading.reader import BAD, Bad, Reader
from holdfast.spec.explain import warn_unused_default
from holdfast.spec.rules.variants import Choice, ChosenVariant, choose, read_settings
from holdfast.spec.sections.forms import Aggregate

_DEFAULTS = {"threshold": 0.8, "similarity_threshold": 0.75}
"""Defaults that `flakestorm init` writes into a rule of any type."""


class RuleKeys(Struct, frozen=True, kw_only=True):
    """Keys of every invariant."""

    id: Annotated[str | None, about("The rule's name; in a map the key is the name.", min_length=1)] = None
    description: Annotated[str, about("What the rule means.")] = ""
    severity: Annotated[Severity, about("Weight in the score: 3, 2, 1, 1; a critical failure fails the contract.")] = (
        "medium"
    )
    weight: Annotated[float | None, about("Weight in the composite; default: that of the severity.", ge=0)] = None
    gate: Annotated[bool, about("A failure sets the composite to 0 and counts as critical.")] = False
    when: Annotated[When, about("The scenarios in which the rule is judged.")] = "always"
    negate: Annotated[bool, about("Swap pass and fail.")] = False
    over: Annotated[Literal["last", "any", "all"] | None, about("Which turns are read.")] = None
    probes: Annotated[
        tuple[Annotated[str, about("", min_length=1)], ...],
        about("Prompts to ask instead of the golden prompts.", min_length=1),
    ] = ()
    replica_aggregation: Annotated[Aggregate | None, about("How its replicas are combined.")] = None
    dangerous_prompts: Annotated[bool, about("For rules of `run`: judge only attacks and probes.")] = False


class RuleEntry(Struct, frozen=True):
    """An invariant as read, with the positions that later checks need."""

    invariant: Invariant
    check: Check
    """The check, built from its settings."""
    at: Node
    settings_at: Node

    @property
    def negative(self) -> bool:
        """Whether it forbids something, after `negate`."""
        if self.check.traits.reads != "text":
            return False
        return bool((self.check.traits.polarity == "negative") != self.invariant.negate)

    @property
    def traits(self) -> CheckTraits:
        """The traits of the check with its settings."""
        return check_traits(self.check)


def is_state_rule(rule: Invariant) -> bool:
    """Return whether the rule itself judges what the agent left behind, without a model's opinion."""
    check = plugins.find("checks", rule.check)
    return check is not None and check.traits.reads == "state" and not check.traits.asks_model


_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(
        ("not_contains", "does_not_contain", "excludes"), "write excludes_pattern, or contains with negate: true"
    ),
    "not_contains_any": "write excludes_pattern, or contains_any with negate: true",
    **dict.fromkeys(("not_regex", "not_matches"), "write excludes_pattern, or regex with negate: true"),
}
"""Names of checks in other tools, and what to write here."""

_KEY_SYNONYMS = {
    **dict.fromkeys(("after", "before"), "the order of calls is a rule of its own: type: only_after, tool, requires"),
    "level": "did you mean severity?",
    "not": "did you mean negate?",
}
"""Keys that people try, and what to write here."""


def read_rules(reader: Reader, node: Node, *, contract: bool) -> tuple[RuleEntry, ...] | Bad:
    """Return the rules of a list or a map. In a contract a list's rules need ids."""
    if node.kind == "list":
        rules = []
        for number, item in enumerate(node.items, 1):  # only the rules of a contract must have ids
            name = item.get("id").text if item.has("id") else None if contract else f"rule-{number}"
            rules.append(_read_entry(reader, item, name, run=not contract))
    elif node.kind == "map" and node.has("type") and node.get("type").kind == "text":
        hint = "start each rule with a dash: - id: …"
        return reader.report(node, "expected a list of rules, found one rule", hint=hint, code="wrong-type")
    elif node.kind == "map":
        rules = [_read_entry(reader, value, key, in_map=True) for key, (_, value) in node.pairs.items()]
    else:
        return reader.report_type(node, "a list or a map")
    if not rules:
        return reader.report(node, "expected at least one rule, found none", code="empty")
    return tuple(r for r in rules if not isinstance(r, Bad))


def _read_entry(
    reader: Reader, node: Node, name: str | None, *, in_map: bool = False, run: bool = False
) -> RuleEntry | Bad:
    if node.kind != "map":
        return reader.report_type(node, "a map", hint="write {id: …, type: …}")
    if name is None:
        reader.report_missing(node, "id", hint="a unique name for this rule")
    if in_map and node.has("id"):
        reader.report(node.get_key("id"), "unknown key: in a map the rule's name is its id", code="unknown-key")
    if not run and node.has("dangerous_prompts"):
        message = "unknown key: it is for the rules of run, a top-level list"
        reader.report(node.get_key("dangerous_prompts"), message, code="unknown-key")
    common = reader.read_keys(RuleKeys, node)
    chosen = _read_check(reader, node)
    if isinstance(common, Bad) or isinstance(chosen, Bad) or name is None:
        return BAD
    return _build_rule(reader, name, common, chosen, node)


def choose_check(reader: Reader, node: Node) -> Choice | Bad:
    """Return the check that the map's type names."""
    return choose(reader, node, "type", "checks", _ELSEWHERE)


def _read_check(reader: Reader, node: Node) -> ChosenVariant | Bad:
    """Return the check: nested under `check:`, or flat among the common keys."""
    common = list_key_names(RuleKeys)
    if not node.has("check"):
        choice = choose_check(reader, node)
        if isinstance(choice, Bad):
            return BAD
        idle = _find_idle_defaults(reader, choice, node)
        return read_settings(reader, choice, node, [*common, "type", *idle], _KEY_SYNONYMS)
    message = "type is written next to check: write it inside" if node.has("type") else "unknown key next to check"
    reader.report_unknown(node, [*common, "check"], message=message)
    inner = node.get("check")
    if inner.kind != "map":
        return reader.report_type(inner, "a map")
    choice = choose_check(reader, inner)
    return BAD if isinstance(choice, Bad) else read_settings(reader, choice, inner, ["type"])


def _find_idle_defaults(reader: Reader, choice: Choice, node: Node) -> list[str]:
    """Return keys of other types that hold their defaults: `flakestorm init` writes every default into a file."""
    keys = list_key_names(choice.type)
    idle = [key for key in _DEFAULTS if key not in keys and node.has(key) and node.get(key).value == _DEFAULTS[key]]
    for key in idle:
        warn_unused_default(reader, node.get_key(key))
    return idle


def _build_rule(
    reader: Reader, name: str, common: Mapping[str, Any], chosen: ChosenVariant, node: Node
) -> RuleEntry | Bad:
    keys = {key: value for key, value in common.items() if key not in ("id", "dangerous_prompts")}
    choice = chosen.choice
    if chosen.plugin.traits.requires_probes and not keys.get("probes"):
        return reader.report_missing(node, "probes", f"missing: {choice.name} needs prompts to probe with")
    if keys.get("over") and (read := chosen.plugin.traits.reads) in ("trace", "state"):
        what = "calls of a trial" if read == "trace" else "state the agent left"
        message = f"has no meaning here: {choice.name} judges the {what}, not its turns"
        return reader.report(node.get_key("over"), message, hint="leave it out", code="bad-setting")
    attacks_only = bool(common.get("dangerous_prompts")) and not keys.get("probes")
    invariant = Invariant(name, choice.name, chosen.settings, position=node.position, attacks_only=attacks_only, **keys)
    return RuleEntry(invariant, chosen.plugin, node, node.get("check") if node.has("check") else node)


def report_duplicate_rules(reader: Reader, rules: Iterable[RuleEntry]) -> None:
    """Report every id that an earlier rule already has."""
    reader.report_duplicates(
        ((rule.invariant.id, rule.at.get("id") if rule.at.has("id") else rule.at) for rule in rules), "id"
    )


def find_aggregation_problem(aggregation: Aggregation, replicas: int, *, contract: bool) -> str:
    """Return what is wrong with combining this many replicas in this way, if anything."""
    if aggregation.kind == "at_least" and aggregation.value is not None and aggregation.value > replicas:
        return f"at_least {aggregation.value:.0f} can never be reached with replicas {replicas}"
    if aggregation.kind == "mean" and contract:
        return "mean is for composites; cells, mutations and sessions pass or fail"
    return ""
