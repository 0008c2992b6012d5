"""The command line's additions to the spec: stored completely with the run, and read back when it is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.scenario import Scenario
from holdfast.model.spec import PartAsked
from holdfast.model.task import Task
from holdfast.plan.select import Select
from holdfast.plugins import DEFAULT_BACKEND


class KnownFaults(Struct, frozen=True):
    """A set of faults that broke a rule, and what was asked then."""

    scenario: Scenario
    prompt: str
    params: dict[str, Any] = {}
    rules: tuple[str, ...] = ()
    """The rules that they broke, without those that are no longer in the spec."""


class FailedTrial(Struct, frozen=True):
    """A failed trial, or a simpler form of it."""

    scenario: Scenario
    task: Task
    params: dict[str, Any] = {}


HuntPurpose = Literal["hunt", "map", "confirmation"]
"""A map runs only calm trials. A confirmation repeats the causes of a hunt on the live model (`--confirm-live`)."""


class HuntOptions(Struct, frozen=True, omit_defaults=True):
    """What a hunt looks for. The causes that are known when it begins are stored with it: they decide what is tried."""

    order: int = 2
    """1 covers single faults, 2 pairs of faults, 3 triples."""
    sweep: tuple[str, ...] = ()
    """Modes that are tried at every write, and nothing else."""
    confirm_live: int = 0
    """How often each cause that a recording showed is asked of the live model."""
    known: tuple[KnownFaults, ...] = ()
    """Causes of earlier hunts."""
    orphans: tuple[str, ...] = ()
    """Ids of those whose prompt or rule is no longer in the spec."""
    replay_orphans: bool = True
    """They are tried with the present prompts, and retired if no rule fails then."""
    shrink: tuple[FailedTrial, ...] = ()
    """The forms of a failed trial, the simplest first: the first that fails again is reduced to its cause."""
    failure: tuple[str, str] = ("", "")
    """Of `shrink`: the rule that it broke and the code of its verdict."""
    failed_trial: str = ""
    """Of `shrink`: the id of the trial."""
    only_known: bool = False
    """Nothing new is tried."""
    purpose: HuntPurpose = "hunt"
    joined: bool = False
    """The run was merged from shards: their trials are known before the first round."""


class RunOptions(Struct, frozen=True, omit_defaults=True):
    """What to run of a spec, how, and what counts as passed. A field with its default was not given."""

    select: Select = Select()
    concurrency: int | None = None
    min_score: float | None = None
    strict: bool = False
    fail_fast: bool = False
    preflight: bool = True
    max_errors: int = 0
    allow_vacuous: bool = False
    replicas: int | None = None
    max_replicas: int | None = None
    """With `--replicas auto`: the same as `replicas`; a prompt's replicas stop once they are decided."""
    max_cost: float | None = None
    """Estimated US dollars that the whole run may cost."""
    max_trials: int | None = None
    """Trials that the whole run may take; controls are not counted."""
    max_time_s: float | None = None
    """Seconds, from the first trial on, in which trials may start."""
    seed: int | None = None
    profile: str | None = None
    record: Path | None = None
    """Where every model call is recorded."""
    replay: Path | None = None
    """The recording that answers model calls."""
    backend: str = DEFAULT_BACKEND
    """The sandbox backend."""
    keep: bool = False
    """Keep the world of a failed trial for inspection."""
    strict_world: bool = False
    """Reject a backend that lacks a feature."""
    allow_commands: bool = False
    """Commands may provide secrets, wherever the spec is."""
    on: str | None = None
    """A cluster to run on: `ray`, or `ray://host:port`; None: this machine."""
    send_secrets: bool = False
    """Send the values of secrets to the workers; otherwise these use their own."""
    part: PartAsked = "contract"
    chaos: bool = False
    """Ask mutations in the weather of the `chaos` block."""
    chaos_profile: str | None = None
    """A profile's weather instead of the block's."""
    sessions: Path | None = None
    """Where the sessions of a replay are; None: in the spec."""
    live: bool = False
    """Calls that a recording does not know are let through."""
    hunt: HuntOptions = HuntOptions()
    """Of a hunt."""

    @property
    def auto(self) -> bool:
        """Whether replicas stop once they are decided."""
        return self.max_replicas is not None

    def merge_resumed(self, now: RunOptions) -> RunOptions:
        """Return these options, updated by those of a resume.

        What to run is fixed. What counts as passed stays unless it is given again. The rest is taken from the resume.
        """
        # A resumed run must ask the same questions as before, or its cells would mix two plans. What counts as passed
        # may change, because it is computed from stored verdicts.
        stays = {name: getattr(self, name) for name in SETTLED}
        stays |= {name: getattr(self, name) for name in (*VERDICT, "strict_world") if not now.has_option(name)}
        return replace(now, **stays)

    def has_option(self, name: str) -> bool:
        """Return whether an option was given."""
        return bool(getattr(self, name) != getattr(DEFAULT, name))

    def find_changed_option(self, now: RunOptions) -> str:
        """Return the first fixed option that now has another value, as written; empty if there is none."""
        for flag, before, now_value, default in zip(
            (*_SELECT, *(f"--{name.replace('_', '-')}" for name in _PLAIN)),
            _list_values(self),
            _list_values(now),
            _list_values(DEFAULT),
            strict=True,
        ):
            if now_value not in (default, before):
                return flag
        return ""


DEFAULT = RunOptions()
SETTLED = (
    "select",
    "replicas",
    "max_replicas",
    "seed",
    "profile",
    "backend",
    "replay",
    "chaos",
    "chaos_profile",
    "live",
    "hunt",
    "part",
)
"""What to run: fixed when the run began."""
VERDICT = ("min_score", "strict", "allow_vacuous", "max_errors")
"""What counts as passed: a resume may change it."""
_PLAIN = SETTLED[1:-1]
"""Options with their own names; the part belongs to the command."""
_SELECT = ("--scenario", "--invariant", "--trial", "-k", "--lf", "the choice of cells", "--shard")


def _list_values(options: RunOptions) -> tuple[Any, ...]:
    """Return the fixed options by flag: a recording by its absolute path."""
    plain = (getattr(options, name) for name in _PLAIN)
    select = options.select
    resolved = (value.resolve() if isinstance(value, Path) else value for value in plain)
    selected = (select.scenarios, select.invariants, select.trials, select.keywords, select.failed, select.cells)
    return (*selected, select.shard, *resolved)
