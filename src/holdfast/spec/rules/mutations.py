"""The `mutations:` section, and the `model:` that writes for it, as a MutationSpec."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.model.model_spec import ModelSpec
from holdfast.model.mutation import (
    INTENT_KEPT,
    MODEL_MUTATIONS,
    MUTATION_WEIGHTS,
    REQUEST_MUTATIONS,
    MutationSpec,
    MutationType,
)
from holdfast.reading.fields import convert
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.spec.explain import warn_unused_default
from holdfast.spec.references import find_url_error
from holdfast.spec.sections.file import File
from holdfast.spec.sections.run import DEFAULT_MODEL, MutationsSection

_NO_MODEL = "write model: {provider: ollama, name: NAME}, or remove the type"
_NO_HTTP = "such types change the HTTP request: remove them, or test the agent through its endpoint"


def build_mutations(reader: Reader, file: File) -> MutationSpec:
    """Return the mutation settings with defaults; reports what cannot be done."""
    model = _build_model(reader, file)
    _warn_attacks_only(reader, file)
    section = file.mutations
    listed = section.at.has("types")
    types = tuple(dict.fromkeys(section.types))
    mutations = MutationSpec(
        count=section.count,
        types=types,
        listed=listed,
        weights={**MUTATION_WEIGHTS, **section.weights},
        custom_templates=section.custom_templates,
        model=model,
    )
    if listed:
        _check_types(reader, file, section.at.get("types"), mutations)
    _check_weights(reader, section, mutations)
    _check_templates(reader, section, mutations)
    return mutations


def _warn_attacks_only(reader: Reader, file: File) -> None:
    """Report that no rule is left for other mutations: `flakestorm init` writes `dangerous_prompts: true` into every
    rule.
    """
    types = file.mutations.types
    if file.run_rules and all(rule.invariant.attacks_only for rule in file.run_rules) and INTENT_KEPT & set(types):
        first = file.run_rules[0]
        message = "every rule has it, so no rule judges mutations that keep the intent"
        hint = "remove it from the rules that hold for every prompt"
        reader.warn(first.at.get_key("dangerous_prompts"), message, hint=hint, code="lint-attacks-only")


def _build_model(reader: Reader, file: File) -> ModelSpec | None:
    """Return the file's model; a bare name that `models:` contains is that entry."""
    section = file.model
    if section is None:
        return None
    at = section.at
    name = section.name or ("" if section.provider != "ollama" or reader.has_error("model") else DEFAULT_MODEL)
    if not name:
        _report_nameless_model(reader, file, at)
        return None
    if section.base_url is not None and (wrong := find_url_error(section.base_url)):
        reader.report(at.get("base_url"), f"{wrong}, found {section.base_url[:60]!r}")
    models = {name: entry.spec for name, entry in file.models.items()}
    from holdfast.planes.llm.sources.provider_hosts import find_entry

    entry_name = find_entry(models, name)
    if entry_name is not None and not any(at.has(key) for key in ("provider", "base_url", "api_key")):
        entry = models[entry_name]
        temperature = (
            entry.temperature if entry.temperature is not None and not at.has("temperature") else section.temperature
        )
        return replace(entry, name=entry.name or name, temperature=temperature)
    return convert(ModelSpec, section, name=name)


def _report_nameless_model(reader: Reader, file: File, at: Node) -> None:
    """Report a model without a name: an error if the file lists types that the model must write."""
    if reader.has_error("model"):
        return
    hint = "the model's name at its provider, or a name of models:"
    listed = file.mutations.at.has("types")
    if listed and not MODEL_MUTATIONS.isdisjoint(file.mutations.types):
        reader.report_missing(at, "name", hint=hint)
    elif file.run_rules and not listed:
        reader.warn(at, "has no name, so it writes no mutations", hint=hint, code="lint-nameless-model")


def _check_types(reader: Reader, file: File, at: Node, mutations: MutationSpec) -> None:
    """Report listed types that cannot be made here."""
    listed: set[str] = set()
    for item in at.items:
        name = item.text
        if name in listed:
            reader.warn(item, f"{name} is listed twice", code="lint-repeated-type")
        listed.add(name)
        if name in MODEL_MUTATIONS and not file.at.has("model"):
            reader.report(item, f"a model must write {name}, but the file has none", hint=_NO_MODEL, code="no-model")
        if name in REQUEST_MUTATIONS and file.agent.type != "http" and not reader.has_error("agent"):
            message = f"{name} needs an HTTP agent, but this one is {file.agent.type}"
            reader.report_conflict(item, message, hint=_NO_HTTP)
        if name == "custom" and not mutations.custom_templates and not reader.has_error("mutations.custom_templates"):
            hint = 'custom_templates: {polite: "Please help: {prompt}"}'
            reader.report(item, "custom needs custom_templates", hint=hint, code="missing-key")


def _check_weights(reader: Reader, section: MutationsSection, mutations: MutationSpec) -> None:
    at = section.at.get("weights")
    for name in section.weights:
        if name not in mutations.types and section.weights[name] == MUTATION_WEIGHTS[name]:
            warn_unused_default(reader, at.get_key(name))
        elif name not in mutations.types:
            message = f"{name} is not one of the types, so its weight has no effect"
            reader.warn(at.get_key(name), message, code="lint-unused-weight")
    if mutations.types and not any(mutations.weights[name] for name in mutations.types):
        reader.report(at, "every weight is 0", hint="give one type a weight above 0", code="bad-weights")


def _check_templates(reader: Reader, section: MutationsSection, mutations: MutationSpec) -> None:
    at = section.at.get("custom_templates")
    for name, text in section.custom_templates.items():
        if "{prompt}" not in text:
            hint = "{prompt} is where the golden prompt goes"
            reader.report(at.get(name), f"has no {{prompt}}, found {text[:60]!r}", hint=hint)
        elif text.strip() == "{prompt}":
            reader.report(at.get(name), "does not change the prompt")
    custom: MutationType = "custom"
    if section.custom_templates and custom not in mutations.types:
        hint = "add custom to mutations.types"
        reader.warn(section.at.get_key("custom_templates"), "are not used", hint=hint, code="lint-unused-templates")
