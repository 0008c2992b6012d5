"""The mutations of a spec."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from holdfast.folders import MUTATION_CACHE, get_own_folder
from holdfast.model.mutation import MODEL_MUTATIONS, MutationSpec
from holdfast.model.run_warning import RunWarning
from holdfast.model.spec import Spec
from holdfast.model.task import Task
from holdfast.mutate.expand import expand
from holdfast.mutate.model_writer import ModelWriter


class MadeTasks(Struct, frozen=True):
    """The tasks that replace the golden prompts, and warnings."""

    tasks: tuple[Task, ...]
    warnings: tuple[RunWarning, ...] = ()


def make_tasks(spec: Spec, environ: Mapping[str, str]) -> MadeTasks:
    """Mutations of every golden prompt; a model is asked if the file has one and a type needs it."""
    settings = spec.mutations or MutationSpec()
    write = None
    if settings.model is not None and MODEL_MUTATIONS & set(settings.types):
        root = Path(spec.path).resolve().parent
        cache = (get_own_folder(spec.file) / MUTATION_CACHE).absolute()
        write = ModelWriter(settings.model, environ, root, cache, retries=spec.retries)
    made = expand(spec.tasks, settings, seed=spec.seed, http=spec.agent.type == "http", write=write)
    left_out = (RunWarning("mutation-left-out", f"{one.type} is left out: {one.why}") for one in made.left_out)
    return MadeTasks(made.tasks, (*left_out, *(RunWarning("mutations-few", note) for note in made.notes)))
