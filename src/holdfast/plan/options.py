"""What the command line adds to the spec: stated here, stored whole with the run, read back when it is taken up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.scenario import Scenario
from holdfast.model.spec import PartAsked
from holdfast.plan.select import Select
from holdfast.plugins import DEFAULT_BACKEND


class HuntOptions(Struct, frozen=True, omit_defaults=True):
    """What a hunt looks for. The causes that are known when it begins are stored with it: they decide what is tried."""

    order: int = 2
    """1 covers single faults, 2 pairs of faults."""
    sweep: tuple[str, ...] = ()
    """Modes that are tried at every write, and nothing else."""
    confirm_live: int = 0
    """How often each cause that a recording showed is asked of the live model."""
    known: tuple[Scenario, ...] = ()
    """Causes of earlier hunts, as scenarios."""
    shrink: Scenario | None = None
    """The scenario of a failed trial that is to be reduced to its cause, and nothing else."""
    prompt: str = ""
    """Of `shrink`: what that trial asked."""
    failure: str = ""
    """Of `shrink`: the rule that it broke and the code of its verdict, one per line."""
    only_known: bool = False
    """Nothing new is tried."""
    map_only: bool = False
    """Only calm trials are run."""


class RunOptions(Struct, frozen=True, omit_defaults=True):
    """What of a spec to run, how, and what counts as held. A field that has its default was not given."""

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
    """Of `--replicas auto`: `replicas` is the same, and a prompt's stop once they have decided."""
    max_cost: float | None = None
    """US dollars, by the estimate, that the whole run may take."""
    max_trials: int | None = None
    """Trials that the whole run may take; controls are not counted."""
    max_time_s: float | None = None
    """How long trials may be begun, from the first on."""
    seed: int | None = None
    profile: str | None = None
    record: Path | None = None
    """Where every model call is kept."""
    replay: Path | None = None
    """Where model calls are answered from."""
    backend: str = DEFAULT_BACKEND
    """Which sandbox a world is opened in."""
    keep: bool = False
    """The world of a trial that failed stays for a look."""
    strict_world: bool = False
    """What a backend cannot enforce is refused."""
    allow_commands: bool = False
    """Secrets may be asked of commands, wherever the spec lies."""
    on: str | None = None
    """A cluster to run on: `ray`, or `ray://host:port`; None: this machine."""
    send_secrets: bool = False
    """Values of secrets travel to the workers; else these have their own."""
    part: PartAsked = "contract"
    chaos: bool = False
    """Mutations are asked in the weather of the `chaos` block."""
    chaos_profile: str | None = None
    """A profile's weather instead of the block's."""
    sessions: Path | None = None
    """Where the sessions of a replay lie; None: in the spec."""
    live: bool = False
    """Calls that a recording does not know are let through."""
    hunt: HuntOptions = HuntOptions()
    """Of a hunt."""

    @property
    def auto(self) -> bool:
        """Whether replicas stop once they have decided."""
        return self.max_replicas is not None

    def taken_up(self, now: RunOptions) -> RunOptions:
        """These, with what is asked now of a run that was begun with them.

        What is run stays as it was settled. What counts as held stays where nothing else is asked. The rest is of now.
        """
        stays = {name: getattr(self, name) for name in SETTLED}
        stays |= {name: getattr(self, name) for name in (*VERDICT, "strict_world") if not now.gives(name)}
        return replace(now, **stays)

    def gives(self, name: str) -> bool:
        """Whether an option was given."""
        return bool(getattr(self, name) != getattr(DEFAULT, name))

    def other(self, now: RunOptions) -> str:
        """The first settled option of which something else is asked now, as it is written; empty if there is none."""
        for flag, before, asked, default in zip(
            (*_SELECT, *(f"--{name.replace('_', '-')}" for name in _PLAIN)),
            _values(self),
            _values(now),
            _values(DEFAULT),
            strict=True,
        ):
            if asked not in (default, before):
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
"""What is run: it was settled when the run began."""
VERDICT = ("min_score", "strict", "allow_vacuous", "max_errors")
"""What counts as held: it may be asked anew, and then stays."""
_PLAIN = SETTLED[1:-1]
"""Those that are options by their own names; the part is the command's."""
_SELECT = ("--scenario", "--invariant", "--trial", "-k", "--lf", "the choice of cells", "--shard")


def _values(options: RunOptions) -> tuple[Any, ...]:
    """What is settled, by flag: a recording by where it lies, whatever it is called from here."""
    plain = (getattr(options, name) for name in _PLAIN)
    select = options.select
    resolved = (value.resolve() if isinstance(value, Path) else value for value in plain)
    named = (select.scenarios, select.invariants, select.trials, select.keywords, select.failed, select.cells)
    return (*named, select.shard, *resolved)
