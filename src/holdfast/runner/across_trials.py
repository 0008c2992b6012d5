"""What the trials of a run show together: isolation, endings, tools that were never called, and differing answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.model.codec import digest, encode_canonical
from holdfast.model.codes import RunWarning
from holdfast.model.observation import Observation
from holdfast.model.shorten import shorten
from holdfast.model.spec import Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import Isolation
from holdfast.plan.checks import get_traits
from holdfast.reading.words import find_misspelt, join_names
from holdfast.runner.job import Job

SESSION_NOTES = 200
"""Number of session notes in the run's report; each trial keeps its own."""
DIFFERS = "it differs from trial to trial; each trial shows its own"


class Conditions:
    """Collects isolation, notes and endings across the trials of a run."""

    def __init__(self, before: Iterable[Isolation] = ()) -> None:
        self._known = {one.feature: one for one in before}
        self._common_notes: tuple[str, ...] | None = None
        self._sessions: dict[str, None] = {}
        self._ended: str | None = None
        """How all trials so far ended, if they all ended badly in the same way; empty once one did not."""
        self._trials = 0

    def add(self, observation: Observation) -> None:
        """Add a trial that has ended. Trials without a world are ignored."""
        if not observation.isolation:
            return
        if self._ended != "":
            self._compare_ending(observation)
        for one in observation.isolation:
            known = self._known.get(one.feature)
            if known is None or (known.enforced and not one.enforced):
                self._known[one.feature] = one
            elif known.enforced and known.why != one.why:
                self._known[one.feature] = replace(known, why=DIFFERS)
        notes = dict.fromkeys(observation.notes)
        before = self._common_notes
        self._common_notes = tuple(notes if before is None else (note for note in before if note in notes))

    def _compare_ending(self, observation: Observation) -> None:
        last = observation.turns[-1] if observation.turns and not observation.error else None
        how = "" if last is None or last.ending == "answered" else f"{last.ending}: {last.detail}"
        self._ended = how if self._ended in (None, how) else ""
        self._trials += 1

    def note_replay(self, task: Task, observation: Observation) -> None:
        """Note how a replayed trial's calls differ from the recording."""
        from holdfast.planes.recorded_tools import write_replay_notes

        session = "" if task.recording is UNSET else task.recording.session
        for note in write_replay_notes(task, observation.recorded):
            if len(self._sessions) < SESSION_NOTES:
                self._sessions[f"session {session}: {note}"] = None

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        """Each isolation feature once; it is enforced only if every trial enforced it."""
        return tuple(self._known.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """How all trials ended, if they ended badly in the same way, and the notes of replayed sessions."""
        alike = f"all {self._trials} trials ended in the same way, with {self._ended}; fix that first"
        return (*([alike] if self._ended and self._trials > 1 else []), *self._sessions)

    @property
    def background(self) -> tuple[str, ...]:
        """The notes that every trial has."""
        return self._common_notes or ()


class CalledTools:
    """Collects the names of the tools that trials called."""

    def __init__(self, spec: Spec) -> None:
        self._names: set[str] = set()
        self._unmatched: dict[tuple[str, str], None] = {}
        """Each rule and tool name that no call has matched yet."""
        self._forbidden: set[tuple[str, str]] = set()
        """Names of forbidden tools: they are suspicious only if a called tool has a similar name."""
        for rule in spec.invariants:
            traits = get_traits(rule)
            # A positive rule needs no warning: without the call it fails.
            if (traits.polarity == "negative") != rule.negate:
                globs = [glob for _, glob in traits.tools if "://" not in glob and "{{" not in glob]
                self._unmatched |= {(rule.id, glob): None for glob in globs}
                if traits.forbids_calls:
                    self._forbidden |= {(rule.id, glob) for glob in globs}

    def add(self, observation: Observation) -> None:
        if not self._unmatched:
            return
        calls = (event for event in observation.trace if event.event_type in ("tool_call", "mcp_call"))
        new = {event.tool for event in calls} - self._names
        self._names |= new
        for key in [key for key in self._unmatched if any(fnmatchcase(name, key[1]) for name in new)]:
            del self._unmatched[key]

    def build_warnings(self) -> Iterator[RunWarning]:
        """Yield one warning for each rule and tool that no trial called."""
        called = f"tools called: {join_names(sorted(self._names))}" if self._names else "no tool was called"
        for rule, tool in self._unmatched:
            if (rule, tool) in self._forbidden and find_misspelt(tool, self._names) is None:
                continue
            text = f"rule {rule} proves nothing about {tool}: no trial called a tool of this name ({called})"
            yield RunWarning("tool-never-called", text)


TEXT_WIDTH = 60
"""Characters of a prompt and of an answer shown in the warning."""


class CalmAnswers:
    """Collects the answers of trials without faults, and detects a prompt with two different answers."""

    def __init__(self, spec: Spec) -> None:
        self._calm = frozenset(scenario.name for scenario in spec.scenarios if scenario.calm)
        self._first: dict[str, tuple[str, str]] = {}
        """By prompt: the digest of its first answer, and the answer's text."""
        self.warning = ""

    def add(self, trial: Trial, observation: Observation) -> None:
        if self.warning or observation.error or (trial.kind != "control" and trial.scenario.name not in self._calm):
            return
        if any(event.cost is not None and event.cost.billed for event in observation.trace):
            return  # a provider's model samples its answers
        answers = [turn.text for turn in observation.turns]
        if not answers or None in answers:
            return
        question = digest(encode_canonical([trial.task, trial.params]))
        answer = digest(encode_canonical(answers))
        first, text = self._first.setdefault(question, (answer, shorten(answers[-1] or "", TEXT_WIDTH)))
        if first != answer:
            prompt, other = shorten(trial.task.prompt, TEXT_WIDTH), shorten(answers[-1] or "", TEXT_WIDTH)
            self.warning = (
                f"answers differed between calm trials of one prompt: '{prompt}' got '{text}' and '{other}'. "
                "Either the agent keeps state between trials or its answers are not deterministic."
            )


def start_comparison(job: Job, controls: Mapping[str, Observation]) -> CalmAnswers | None:
    """Start comparing if the agent is new for every trial; other agents are asked twice in the preflight."""
    agent = job.spec.agent
    if agent.isolation != "fresh" or (agent.type == "http" and not agent.launched):
        return None
    comparison = CalmAnswers(job.spec)
    for trial in (job.preflight_trial, *job.plan.controls):
        if trial is not None and trial.id in controls:
            comparison.add(trial, controls[trial.id])
    return comparison
