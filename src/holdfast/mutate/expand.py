"""Golden prompts to mutated tasks, by the mutator of each type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import UNSET, Struct

from holdfast.errors import UserError
from holdfast.folders import MUTATION_CACHE, get_own_folder
from holdfast.model import mutation
from holdfast.model.codec import make_storable
from holdfast.model.codes import RunWarning
from holdfast.model.spec import Spec
from holdfast.model.task import Task, Variation
from holdfast.mutate.changed_requests import RequestMutator
from holdfast.mutate.encoding_attacks import ENCODING_ATTACKS
from holdfast.mutate.language_mixing import LANGUAGE_MIXING
from holdfast.mutate.length_extremes import LENGTH_EXTREMES
from holdfast.mutate.model_writer import ModelWriter, Writer
from holdfast.mutate.mutator import CorpusAttacks, CustomTemplates, MadeMutation, Mutator, PromptDraft, create_random
from holdfast.mutate.noise import NOISE
from holdfast.mutate.token_manipulation import TOKEN_MANIPULATION
from holdfast.mutate.written import fill_by_model

CORPORA: tuple[mutation.MutationType, ...] = (
    "prompt_injection", "context_manipulation", "multi_turn_attack", "advanced_jailbreak", "format_poisoning",
    "temporal_attack",
)  # fmt: skip
"""Types whose texts are a file of attacks."""
REQUEST_MUTATORS: Mapping[str, Mutator] = {
    kind: RequestMutator(kind) for kind in mutation.MUTATIONS if kind in mutation.REQUEST_MUTATIONS
}
"""By type, in the order of the types. They need an HTTP agent."""
_MUTATORS: Mapping[str, Mutator] = {
    "encoding_attacks": ENCODING_ATTACKS,
    "language_mixing": LANGUAGE_MIXING,
    "length_extremes": LENGTH_EXTREMES,
    "noise": NOISE,
    "token_manipulation": TOKEN_MANIPULATION,
    **{type: CorpusAttacks(type) for type in CORPORA},
    **REQUEST_MUTATORS,
}


def find_mutator(type: mutation.MutationType, templates: Mapping[str, str] | None = None) -> Mutator:
    """Return the mutator of a type that needs no model; `templates` are those of `custom`."""
    return CustomTemplates(templates or {}) if type == "custom" else _MUTATORS[type]


DRAWS = 25
"""Consecutive draws without a new mutation, after which a type has no more for a prompt."""


class OmittedType(Struct, frozen=True):
    """A default type that cannot be made here."""

    type: str
    why: str


class Expansion(Struct, frozen=True):
    """The mutated tasks of a file."""

    tasks: tuple[Task, ...]
    left_out: tuple[OmittedType, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes for the reader: types with fewer mutations than their share."""


def make_tasks(spec: Spec, environ: Mapping[str, str]) -> tuple[tuple[Task, ...], tuple[RunWarning, ...]]:
    """Return the tasks that replace the golden prompts, and warnings; a model writes some if the file names one."""
    settings = spec.mutations or mutation.MutationSpec()
    write = None
    if settings.model is not None and mutation.MODEL_MUTATIONS & set(settings.types):
        root = Path(spec.path).resolve().parent
        cache = (get_own_folder(spec.file) / MUTATION_CACHE).absolute()
        write = ModelWriter(settings.model, environ, root, cache, retries=spec.retries)
    made = expand(spec.tasks, settings, seed=spec.seed, http=spec.agent.type == "http", write=write)
    left_out = (RunWarning("mutation-left-out", f"{one.type} is left out: {one.why}") for one in made.left_out)
    return made.tasks, (*left_out, *(RunWarning("mutations-few", note) for note in made.notes))


def expand(
    tasks: Sequence[Task], settings: mutation.MutationSpec, *, seed: int, http: bool, write: Writer | None = None
) -> Expansion:
    """Make `settings.count` mutations of each task, shared evenly among the types; the first types take the rest.

    The same tasks, settings and seed give the same mutations, unless a model writes them. All mutations of a prompt
    differ from each other and from the prompt. `http`: the agent is called by HTTP, so requests can be mutated.
    """
    types, left_out = _select_types(settings, http, write)
    each, rest = divmod(settings.count, len(types))
    shares = {type: each + (n < rest) for n, type in enumerate(types)}
    first = {task.turns: task for task in reversed(tasks)}  # of equal prompts the first counts
    drafts = [PromptDraft(task, {}, {((task.turns[0],), (), None)}) for task in reversed(first.values())]
    for draft in drafts:
        for type in types:
            if type not in mutation.MODEL_MUTATIONS:
                _fill_draft(draft, type, shares[type], find_mutator(type, settings.custom_templates), seed)
    notes: list[str] = []
    for type in types:
        if write is not None and type in mutation.MODEL_MUTATIONS and shares[type]:
            notes += fill_by_model(drafts, type, shares[type], seed, write)
    made = tuple(
        _build_task(d.task, type, one, settings) for d in drafts for type in types for one in d.made.get(type, ())
    )
    return Expansion(made, left_out, (*_note_shortfalls(drafts, shares), *notes))


def _select_types(
    settings: mutation.MutationSpec, http: bool, write: Writer | None
) -> tuple[tuple[mutation.MutationType, ...], tuple[OmittedType, ...]]:
    """Return the types that can be made, and those left out; raise UserError if the file lists one of the latter."""
    obstacles: dict[mutation.MutationType, str] = {}
    for type in settings.types:
        if type in mutation.MODEL_MUTATIONS and write is None:
            obstacles[type] = "a model must write it, but the file names none in model:"
        elif type in mutation.REQUEST_MUTATIONS and not http:
            obstacles[type] = "it changes the HTTP request, but the agent is not called over HTTP"
        elif type == "custom" and not settings.custom_templates:
            obstacles[type] = "the file has no custom_templates"
    if settings.listed:
        for type, reason in obstacles.items():
            raise UserError(
                f"{type} is listed, but cannot be used: {reason}", key="mutations.types", code="mutation-impossible"
            )
    types = tuple(type for type in settings.types if type not in obstacles)
    if not types:
        raise UserError(
            "none of the mutation types is possible here", key="mutations.types", code="mutation-impossible"
        )
    return types, tuple(OmittedType(type, reason) for type, reason in obstacles.items())


def _fill_draft(draft: PromptDraft, type: mutation.MutationType, share: int, mutator: Mutator, seed: int) -> None:
    """Add this many mutations of the first turn, or as many as the type has for it."""
    prompt = draft.task.turns[0]
    n = missed = 0
    while len(draft.made.get(type, ())) < share and missed < DRAWS:
        # Nobody knows how many different mutations a type has for a prompt. After many consecutive draws without a new
        # one, it is taken to have no more.
        one = mutator.mutate(prompt, n, create_random(seed, prompt, type, n))
        missed = 0 if one is not None and draft.add_if_new(type, one) else missed + 1
        n += 1


def _build_task(source: Task, type: mutation.MutationType, one: MadeMutation, settings: mutation.MutationSpec) -> Task:
    """Return the task with its first turn mutated; further turns of the golden prompt follow unchanged."""
    variation = Variation(
        mutation=type,
        source=source.prompt,
        name=one.name,
        attack=type not in mutation.INTENT_KEPT,
        weight=settings.weights[type],
        canaries=one.canaries,
        action=one.action,
        request=one.request,
    )
    before = (*(() if source.context is UNSET else source.context), *one.context)
    turns = (*one.turns, *source.turns[1:])
    return make_storable(Task(turns, "mutation", variation, before or UNSET, user=source.user))


def _note_shortfalls(drafts: list[PromptDraft], shares: dict[mutation.MutationType, int]) -> list[str]:
    """Return which types have fewer than their share."""
    notes = []
    for type, share in shares.items():
        if type in mutation.MODEL_MUTATIONS and share:
            continue  # mutations by a model are reported where they are read
        short = [draft for draft in drafts if len(draft.made.get(type, ())) < share]
        made = sum(len(draft.made.get(type, ())) for draft in drafts)
        if not share:
            notes.append(f"{type}: none, because count is less than the number of types")
        elif short:
            prompts = "1 prompt has" if len(short) == 1 else f"{len(short)} prompts have"
            notes.append(f"{type}: {made} of {share * len(drafts)} mutations, because {prompts} no more different ones")
    return notes
