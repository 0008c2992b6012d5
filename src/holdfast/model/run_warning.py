"""Warnings and notes of a run: what the user should know whatever the verdict is."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct
from msgspec.structs import replace

STATEFUL = "stateful"
"""The one warning whose wording a document prescribes."""
WARNINGS = {
    "agent-page": "The agent answers with an HTML page: a login form, or the page of a proxy.",
    "answers-differ": "One prompt was answered in two ways in calm trials.",
    "cost-unpriced": "`--max-cost` does not count a model whose price is not known.",
    "cost-unseen": "`--max-cost` saw no call with a known price.",
    "gateway-unused": "The agent's model calls do not come through the gateway.",
    "harness-trouble": "Holdfast or a provider failed in trials; only their passes count.",
    "last-failed": "What `--lf` selected: the trials that failed before, or all of them.",
    "model-not-asked": "The agent asked no model through the gateway.",
    "model-unread": "The agent asks a model in a protocol that Holdfast does not read.",
    "more-warnings": "There are more warnings than the summary of `ci` shows.",
    "mutation-left-out": "A type of mutation cannot be made for this agent.",
    "mutations-few": "A type has fewer mutations than its share.",
    "mutations-unjudged": "No rule judges the mutations of a type in this run.",
    "option-concurrency": "More trials run in parallel than there are cores, and a rule measures latency.",
    "option-idle": "An option changes nothing in this run.",
    "option-min-score": "`--min-score` is 0 to 100, and looks like a fraction.",
    "program-changed": "A program of this machine changed during the run.",
    "program-missing": "A rule runs a program that the world does not have.",
    "proxy-unused": "A proxy is set in the environment, but Holdfast connects directly.",
    "recordings-unmet": "Recorded responses do not reach all calls of this agent.",
    "reporter-shadowed": "The reporter of a plug-in has the same suffix as a built-in one.",
    "request-refused": "The agent refused the first request, sent without faults: its section may be wrong.",
    "run-forged": "The resumed run's files are not as Holdfast left them: they were changed, or never sealed.",
    "seal-broken": "Something else wrote to the run's files.",
    "seal-failed": "The run's files could not be sealed.",
    "secret-short": "The value of a variable is too short to be masked.",
    "session-idle": "No rule judges a session.",
    "session-left-out": "A session could not be imported.",
    "session-unknown-tool": "A session has responses of a tool that the agent does not declare.",
    "spec-edited": "The spec was edited after the resumed run began; the run continues with its own copy.",
    STATEFUL: "The agent seems to keep state between trials, so they run one at a time.",
    "tool-never-called": "A rule passes because no trial called the tool that it names.",
    "traces-unsent": "The traces could not be exported.",
    "trial": "Something about one trial, while it runs.",
}
"""The codes of warnings that are not about the spec file, with their meanings. Problems of the file have their own
codes.
"""


class RunWarning(Struct, frozen=True, omit_defaults=True):
    """A warning: a stable code, and its sentence."""

    code: str
    text: str
    ignored: bool = False
    """`warnings.ignore` of the spec lists its code: reports count it and show it only with `-v`."""

    def __str__(self) -> str:
        return self.text


def is_warning(code: str) -> bool:
    """Whether the code belongs to a warning; errors cannot be ignored."""
    return code in WARNINGS or code.startswith("lint-") or code == "left-out-scenario"


def mark_ignored(warnings: Iterable[RunWarning], ignored: Collection[str]) -> tuple[RunWarning, ...]:
    """Return the warnings, with those that have one of these codes marked as ignored."""
    return tuple(replace(one, ignored=one.code in ignored) for one in warnings)


NOTES = {
    "agent-start": "How the agent is started, and what that costs.",
    "bad-endings": "Trials ended badly and failed no rule.",
    "cached": "The run was taken from the cache; no trial ran.",
    "cases-undecided": "Rules of the cases were left out, so no case is decided.",
    "cluster": "Where the trials ran, and what became of the workers.",
    "every-trial": "Something that was noted in every trial, or in one of a recorded session.",
    "fail-fast": "The run stopped at the first failure.",
    "functions-unproven": "The agent's calls are known only from its own process.",
    "judged-again": "How a stored run was judged again: by which rules, on which trials.",
    "merged": "The run was merged from shards.",
    "mounts": "Which files and programs of this machine the sandbox shows.",
    "no-sandbox": "The agent ran without isolation.",
    "not-enforced": "The worlds of single trials could not enforce everything.",
    "profile-left-out": "The agent cannot meet some faults of a profile.",
    "recording": "Model calls were answered from a recording.",
    "replicas": "How many replicas were enough, or would be.",
    "sandbox": "What the sandbox enforces on this machine, and what it does not.",
    "scripted": "A script answered model calls.",
    "selection": "Only a part of the file was run.",
    "simulated": "The faults damaged the answer, not the agent's own calls.",
    "stopped": "A budget ended the run.",
    "unsealed": "The run's files are not as Holdfast left them.",
    "world-kept": "Where the sandboxes of failed trials are kept.",
}
"""The codes of notes, with their meanings."""


class RunNote(Struct, frozen=True, omit_defaults=True):
    """A note for every report of the run: a stable code, and its sentence."""

    code: str
    text: str
    about: tuple[str, ...] = ()
    """What it names, as values: for `sandbox`, the features that are not enforced."""

    def __str__(self) -> str:
        return self.text
