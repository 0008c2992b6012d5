"""Options that several commands share."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from holdfast.cli.option_values import AUTO, MAX_REPLICAS, BackendName, FiniteNumber, ReplicaCount, Seconds, ShardOf
from holdfast.errors import UsageError
from holdfast.folders import OPTION, use_runs_folder
from holdfast.plugins import BUILT_IN, DEFAULT_BACKEND

if TYPE_CHECKING:  # a run is planned once the words are read: TAB and --help need none of that
    from holdfast.model.codes import RunWarning
    from holdfast.model.spec import Spec
    from holdfast.plan import RunOptions
    from holdfast.plan.select import Shard

F = TypeVar("F", bound=Callable[..., Any])


HEADINGS = (
    ("Selection", "config scenarios invariants keywords last_failed trials profile chaos chaos_only chaos_profile"),
    ("Hunt", "order sweep cause confirm_live write"),
    ("Sessions", "run_id project status date_range min_latency_ms limit run_now live"),
    ("Run", "replicas max_replicas seed concurrency fail_fast no_preflight resume force cached baseline"),
    ("Output", "outputs as_json quiet verbose dry_run exit_zero no_report otlp annotations runs_dir"),
    ("Verdict", "min_score strict allow_vacuous max_errors"),
    ("Budgets", "max_trials max_time_s max_cost"),
    ("Models", "record replay"),
    ("Sandbox", "backend keep strict_world allow_commands"),
    ("Cluster", "shard on send_secrets"),
)
"""The options of a run by heading; the headings that most people need come first."""
_WIDTH = 22
"""Width of the option column: descriptions start at the same column under every heading."""
_RANGE = re.compile(r" *\[(?:default: (\S+); )?(?:\d+<=?)?x(?:[<>]=?\d+)?\]$")
"""The range that click adds to a description. A value outside it is rejected with the range anyway."""


class CommandGroup(click.Group):
    """A group that prints its help and exits 4 without a subcommand; click's own behaviour depends on its version."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(4)
        return super().parse_args(ctx, args)


class HeadedCommand(click.Command):
    """A command that lists its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {one.name: record for one in options if (record := one.get_help_record(ctx))}
        records_left = {name: (flags, _RANGE.sub(_keep_default, words)) for name, (flags, words) in records.items()}
        sections = [
            (heading, [records_left.pop(name) for name in names.split() if name in records_left])
            for heading, names in HEADINGS
        ]
        for heading, listed in (*sections, ("Other", list(records_left.values()))):
            if listed:
                with formatter.section(heading):
                    formatter.write_dl([(flags.ljust(_WIDTH), words) for flags, words in listed], col_max=_WIDTH)


def _keep_default(match: re.Match[str]) -> str:
    return f"  [default: {match[1]}]" if match[1] else ""


def complete_from(what: str) -> Callable[[click.Context, click.Parameter, str], Any]:
    """Return a completion callback; the words are computed only when the user presses TAB."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
        from holdfast.cli.option_values import complete_word

        return complete_word(what, ctx, incomplete)

    return complete


FILE = click.Path(path_type=Path)
_FILE = click.argument("file", required=False, type=FILE, shell_complete=complete_from("specs"))
_CONFIG = click.option(
    "-c",
    "--config",
    type=FILE,
    metavar="FILE",
    help="Spec file. Default: holdfast.yaml.",
    shell_complete=complete_from("specs"),
)


def add_config(command: F) -> F:
    """Add the spec as last argument or as -c; the command receives it as `config`."""

    @wraps(command)
    def with_file(*args: Any, file: Path | None = None, config: Path | None = None, **raw_options: Any) -> Any:
        if file is not None and config is not None and file != config:
            raise UsageError(f"two specs: {file} and -c {config}", hint="name one of them", code="options-conflict")
        return command(*args, config=file or config, **raw_options)

    return cast(F, _CONFIG(_FILE(with_file)))


def _choose_runs(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    ctx.meta[OPTION] = value  # for completion, which comes after the context has closed
    ctx.with_resource(use_runs_folder(value))


runs_option = click.option(
    OPTION,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    expose_value=False,
    callback=_choose_runs,
    help="Folder of the stored runs. Default: .holdfast/runs next to the spec.",
)
"""For every command that stores or looks up runs."""
config_option = _CONFIG
"""The spec, given only by -c."""
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON only.")

shard = click.option("--shard", type=ShardOf(), metavar="I/N", help="Run shard I of N; join them with holdfast merge.")
_REPLICAS = click.option(
    "--replicas", type=ReplicaCount(), metavar="N|auto", help="Run each trial N times, or until it is decided."
)
_MAX_REPLICAS = click.option(
    "--max-replicas", type=click.IntRange(1, 100_000), metavar="N", help="Maximum for --replicas auto. Default: 20."
)
_SEED = click.option("--seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Random seed.")
_WHAT = [
    click.option(
        "--scenario",
        "scenarios",
        multiple=True,
        metavar="GLOB",
        help="Run only these scenarios.",
        shell_complete=complete_from("scenarios"),
    ),
    click.option(
        "--invariant",
        "invariants",
        multiple=True,
        metavar="GLOB",
        help="Run only these rules.",
        shell_complete=complete_from("rules"),
    ),
    click.option("-k", "keywords", metavar="EXPR", default="", help="Run only matching names: 'cites and not slow'."),
    click.option("--lf", "--last-failed", "last_failed", is_flag=True, help="Run only what failed in the last run."),
    click.option("--trial", "trials", multiple=True, metavar="ID", help="Run only this trial, to reproduce a failure."),
    shard,
    click.option(
        "--profile",
        metavar="NAME",
        help="Add a built-in chaos profile as a scenario.",
        shell_complete=complete_from("profiles"),
    ),
    _REPLICAS,
    _MAX_REPLICAS,
    _SEED,
]
_HOW = [
    runs_option,
    click.option(
        "-j", "--concurrency", type=click.IntRange(1), metavar="N", help="Number of trials to run in parallel."
    ),
    click.option("--on", metavar="ADDRESS", help="Run on a Ray cluster: ray (a local one) or ray://HOST:PORT."),
    click.option("--send-secrets", is_flag=True, help="Send secrets to the workers of the cluster."),
    click.option("--record", type=FILE, metavar="FILE", help="Record every model call in FILE."),
    click.option("--replay", type=FILE, metavar="FILE", help="Answer model calls from FILE."),
    click.option(
        "--max-cost",
        type=FiniteNumber(0, min_open=True),
        metavar="USD",
        help="Stop starting trials once this much is spent.",
    ),
    click.option("--max-trials", type=click.IntRange(1), metavar="N", help="Maximum number of trials."),
    click.option(
        "--max-time",
        "max_time_s",
        type=Seconds(),
        metavar="T",
        help="Stop starting trials after this time: 90, 5m, 1h.",
    ),
    click.option("--no-preflight", is_flag=True, help="Do not call the agent once before the run."),
]
_FAIL_FAST = click.option("-x", "--fail-fast", is_flag=True, help="Stop at the first failure.")
_RESUME = [
    click.option("--resume", metavar="RUN", help="Resume an interrupted run.", shell_complete=complete_from("runs")),
    click.option("--force", is_flag=True, help="Resume even if the spec or the agent changed."),
]
_WORLD = [
    click.option("--backend", type=BackendName(), default=DEFAULT_BACKEND,
                 help=f"Sandbox backend: {', '.join(BUILT_IN['sandboxes'])}.", show_default=True),
    click.option("--keep", is_flag=True, help="Keep the sandbox of failed trials for inspection."),
    click.option("--strict-world", is_flag=True, help="Fail if this machine cannot enforce the sandbox."),
    click.option("--allow-commands", is_flag=True, help="Allow specs to read secrets from commands."),
]  # fmt: skip
VERDICT_OPTIONS = (
    click.option(
        "--min-score", type=FiniteNumber(0, 100), metavar="N", help="Tolerate failures at or above this score, 0-100."
    ),
    click.option("--strict", is_flag=True, help="Exit 5 if any cell is unproven."),
    click.option("--allow-vacuous", is_flag=True, help="Accept scenarios whose faults were never triggered."),
    click.option(
        "--max-errors", type=click.IntRange(0), default=0, metavar="N", help="Number of harness errors to tolerate."
    ),
)


class ReportOption(click.Option):
    """The `-o` option, whose help lists every installed format."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from holdfast.report.formats.files import list_suffixes

        self.help = f"Write a report: {' '.join(list_suffixes())}"
        return super().get_help_record(ctx)


output_files = click.option("-o", "--output", "outputs", multiple=True, type=FILE, metavar="FILE", cls=ReportOption)
whole_files = click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=FILE,
    metavar="DIR|FILE",
    help="Write all reports to DIR, or one file: .html .json .md .xml .sarif",
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Print only what failed, the score and the verdict.")
verbose = click.option("-v", "--verbose", is_flag=True, help="Print every failure in full.")
_ANNOTATIONS = click.option("--annotations", is_flag=True, help="Print GitHub annotations even outside Actions.")
_CACHED = click.option("--cached", is_flag=True, help="Reuse a stored run if nothing has changed.")
_NO_REPORT = click.option("--no-report", is_flag=True, help="Do not write report.html.")
OUTPUT_OPTIONS = (
    output_files,
    click.option("--otlp", metavar="FILE|URL", help="Export every call as OpenTelemetry spans."),
    as_json,
    quiet,
    verbose,
    click.option("--dry-run", is_flag=True, help="Print the number of trials and run nothing."),
    _NO_REPORT,
    _ANNOTATIONS,
    _CACHED,
)
RUN_OPTIONS = (*_WHAT, *_HOW, _FAIL_FAST, *_RESUME, *_WORLD, *VERDICT_OPTIONS)
"""What runs, how it runs, and what counts as passed."""
MAP_OPTIONS = (_REPLICAS, _SEED, *_HOW, *_WORLD)
"""For a command that runs only calm trials and prints nothing that `-q` could leave out."""
HUNT_OPTIONS = (*MAP_OPTIONS, *_RESUME, quiet)
"""For a hunt: none that select scenarios, and no minimum score."""
WHOLE_OPTIONS = (shard, _REPLICAS, _MAX_REPLICAS, _SEED, *_HOW, _FAIL_FAST, *_RESUME, *_WORLD, *VERDICT_OPTIONS)
"""For a run of several parts."""
WHOLE_OUTPUT = (whole_files, as_json, quiet, verbose, _NO_REPORT, _ANNOTATIONS, _CACHED)


def add(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds all these options to a command."""

    def decorate(command: F) -> F:
        for option in reversed(options):  # click lists the decorator that is applied last first
            command = option(command)
        return command

    return decorate


def build_run_options(
    *,
    scenarios: tuple[str, ...] = (),
    invariants: tuple[str, ...] = (),
    trials: tuple[str, ...] = (),
    keywords: str = "",
    shard: Shard | None = None,
    no_preflight: bool = False,
    replicas: int | str | None = None,
    max_replicas: int | None = None,
    **raw_options: Any,
) -> RunOptions:
    """Build RunOptions from the command line; `raw_options` are fields of RunOptions."""
    from holdfast.plan import RunOptions, Select

    if replicas == AUTO:
        most = max_replicas or MAX_REPLICAS
        raw_options |= {"replicas": most, "max_replicas": most}
    elif max_replicas is not None:
        raise UsageError(
            "--max-replicas requires --replicas auto", hint="give both, or --replicas N", code="option-inapplicable"
        )
    else:
        raw_options |= {"replicas": replicas}
    _check_cluster_options(raw_options.get("on"), send_secrets=raw_options.get("send_secrets", False))
    select = Select(scenarios, invariants, trials, keywords, shard=shard)
    return RunOptions(select=select, preflight=not no_preflight, **raw_options)


def _check_cluster_options(on: str | None, *, send_secrets: bool) -> None:
    if on is not None:
        from holdfast.execute.ray_cluster import check_target

        check_target(on)
    elif send_secrets:
        raise UsageError("--send-secrets requires --on", hint="add --on ray://host:port", code="option-inapplicable")


def warn(message: str) -> None:
    """Print a warning to stderr."""
    from holdfast.report.safe import to_one_line

    print(f"warning: {to_one_line(message)}", file=sys.stderr)


def check_options(spec: Spec, options: RunOptions) -> list[RunWarning]:
    """Return warnings about options that have no effect or probably mean something else."""
    from holdfast.model.codes import RunWarning
    from holdfast.plan import RunOptions, get_traits

    warnings = []
    if spec.part == "scenario" and not spec.matrix and options.min_score is not None:
        raise UsageError(
            "--min-score applies to a contract, but this file has no chaos_matrix",
            hint="set scoring.pass_threshold for composites",
            code="option-inapplicable",
        )
    sandbox_options = {
        "--backend": options.backend != RunOptions().backend,
        "--keep": options.keep,
        "--strict-world": options.strict_world,
    }
    for option in [name for name, is_set in sandbox_options.items() if is_set and spec.world is None]:
        text = f"{option} has no effect: this file and its agent use no sandbox"
        warnings.append(RunWarning("option-idle", text))
    if options.min_score is not None and 0 < options.min_score <= 1:
        text = f"--min-score is 0 to 100: {options.min_score:g} means {options.min_score:g} %"
        warnings.append(RunWarning("option-min-score", text))
    cores = os.cpu_count() or 1
    timed = any(get_traits(rule).reads == "latency" for rule in spec.invariants)
    if timed and options.concurrency is not None and options.concurrency > cores:
        cost = "trials that wait for a core look slow"
        text = f"{options.concurrency} trials in parallel on {cores} cores, and a rule measures latency: {cost}"
        warnings.append(RunWarning("option-concurrency", text))
    return warnings
