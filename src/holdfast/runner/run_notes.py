"""Notes on a run: what it left out, and how far its isolation can be trusted."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast import plugins
from holdfast.folders import shorten_path
from holdfast.model.capabilities import build_missing
from holdfast.model.codes import RunNote
from holdfast.model.score import Score
from holdfast.model.spec import Spec
from holdfast.model.world import Isolation
from holdfast.plan import Plan, RunOptions
from holdfast.plugins import DEFAULT_BACKEND
from holdfast.reading.words import format_plural
from holdfast.store.rundir import RunEnd


def build_notes(options: RunOptions, spec: Spec, plan: Plan, score: Score) -> Iterator[RunNote]:
    """Yield notes about the spec and the options of the run."""
    yield from _note_faults(spec)
    if options.replay is not None:
        yield RunNote("recording", f"model calls were answered from the recording {shorten_path(options.replay)}")
    if score.spent is not None and score.spent.scripted:
        only = score.spent.is_only_scripted
        calls = "the model was a script" if only else "some model calls were answered by a script"
        yield RunNote("scripted", f"{calls}: this tests the program around it, not a model")
    yield from _note_selection(options)
    if spec.part == "scenario" and not plan.decides_cases:
        text = "rules of the cases were left out: no case is decided, and each cell is judged on its own"
        yield RunNote("cases-undecided", text)


def note_self_reported(spec: Spec) -> Iterator[Isolation]:
    """Note that calls reported by the agent's own process have no other witness."""
    agent = spec.agent
    if spec.world is not None and agent.type != "http" and (agent.tools or agent.tool_registry or agent.llm):
        yield build_missing("functions-unproven")


def note_missing_isolation(ended: RunEnd) -> Iterator[RunNote]:
    """Note isolation features that the worlds of single trials lacked, unless the sandbox's own note names them.

    A limit that nobody set is not missing.
    """
    known = {feature for note in ended.background if note.code == "sandbox" for feature in note.about}
    missing = [one for one in ended.isolation if one.asked and not one.enforced and one.feature not in known]
    if missing:
        features = (f"{one.feature} ({one.why})" if one.why else one.feature for one in missing)
        yield RunNote("not-enforced", f"not enforced in this world: {', '.join(features)}")


def describe_stop(ended: RunEnd, planned: int, *, auto: bool) -> str:
    """Describe what a budget left out."""
    if not ended.stopped_by:
        return ""
    left = f"{ended.unasked} of {planned + ended.unasked} did not run"
    if auto:
        left = f"at least {ended.unasked} more would have run"
    return f"stopped by {ended.stopped_by}: {format_plural(planned, 'trial')} ran, {left}; --resume continues"


def _note_selection(options: RunOptions) -> Iterator[RunNote]:
    """Say which part of the spec was selected, because a passing part does not prove the whole."""
    keywords = options.select.keywords
    for option, names in (
        ("-k", (keywords,) if keywords else ()),
        ("--lf", ("(what failed before)",) if options.select.failed else ()),
        ("cells", (str(len(options.select.cells)),) if options.select.cells else ()),
        ("--scenario", options.select.scenarios),
        ("--invariant", options.select.invariants),
        ("--trial", options.select.trials),
        ("--shard", (str(options.select.shard),) if options.select.shard else ()),
    ):
        if names:
            what = "contract" if options.part == "contract" else "file"
            yield RunNote("selection", f"a part of the {what}: {' '.join(f'{option} {name}' for name in names)}")


def _note_faults(spec: Spec) -> Iterator[RunNote]:
    """Yield notes on what the faults of this spec could not do to its agent."""
    if spec.agent.simulate == "answer" and any(scenario.on_calls for scenario in spec.scenarios):
        yield RunNote("simulated", "simulated: tool and model faults damaged the answer, not the agent's own calls")
    for scenario in spec.scenarios:
        if scenario.left_out:
            what = ", ".join(scenario.left_out)
            text = f"{scenario.name}: profile {scenario.profile} is used without {what}, which this agent cannot meet"
            yield RunNote("profile-left-out", text)


def note_isolation(spec: Spec, backend: str) -> Iterator[RunNote]:
    """Yield notes on how far to trust the observations of this agent."""
    if spec.world is None:
        text = "no sandbox: the agent ran with your rights, your environment and your network"
        yield RunNote("no-sandbox", text)
    elif not _is_isolating(backend):
        yield RunNote("no-sandbox", f"no isolation: the {backend} backend only gives the agent a folder of its own")
    agent = spec.agent
    if agent.type != "http" and (agent.tools or agent.tool_registry or agent.llm):
        text = (
            "tool and model faults act inside the agent's own process: the agent could detect them, "
            "and Holdfast knows only the calls that this process reports"
        )
        yield RunNote("functions-unproven", text)


def describe_exposure(spec: Spec, backend: str) -> str:
    """Describe weak isolation in a few words."""
    if spec.world is None:
        return "no sandbox: the agent ran with your rights"
    return "" if _is_isolating(backend) else f"no isolation: {backend} backend"


def _is_isolating(backend: str) -> bool:
    """Return whether the backend gives the agent its own network and folders; one that is no longer installed did."""
    plugin = plugins.find("sandboxes", backend)
    return plugin is None or bool(plugin.traits.isolates)


def describe_isolation(spec: Spec, backend: str = DEFAULT_BACKEND) -> str:
    """Describe in a few words how trials and cells are isolated from each other."""
    agent = spec.agent
    if spec.world is not None:
        how = f"a fresh {backend} sandbox each" if _is_isolating(backend) else "a fresh folder and process each"
    elif agent.type == "http" and agent.launched:
        how = "a fresh instance each" if agent.isolation == "fresh" else "one instance per slot"
        how += ", reset before each trial" if agent.has_reset else ""
    elif agent.type == "http":
        how = "one running agent" + (", reset before each trial" if agent.has_reset else "")
    else:
        how = {
            "fresh": "fresh process each",
            "worker": "one process per slot",
            "inline": "inside Holdfast's process",
        }[agent.isolation]
    cells = "a trial per cell" if spec.cell_rules else "a trial serves every rule of its scenario"
    return f"{how}; {cells}"
