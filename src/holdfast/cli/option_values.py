"""The values of options: parsing, and completion with TAB (holdfast completion)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from math import isfinite
from typing import Any

import click
from click.shell_completion import CompletionItem

from holdfast import plugins
from holdfast.folders import DEFAULT_FILES, OPTION, get_runs_folder, use_runs_folder

AUTO = "auto"
MAX_REPLICAS = 20
"""The default maximum of `--replicas auto`."""
MAX_SHARDS = 10_000


class FiniteNumber(click.FloatRange):
    """A number within limits. `nan` is rejected: nothing is ever below or above it."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


class ReplicaCount(click.IntRange):
    """A number of replicas, or `auto`."""

    name = "number"

    def __init__(self) -> None:
        super().__init__(1, 100_000)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return AUTO if value == AUTO else super().convert(value, param, ctx)


class BackendName(click.ParamType):  # type: ignore[type-arg]  # generic for the type checker alone
    """A sandbox backend, built in or installed."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # Installed ones take a while to find, and most runs name none.
        if value not in plugins.BUILT_IN["sandboxes"] and value not in plugins.list_names("sandboxes"):
            self.fail(f"{value!r} is not one of {', '.join(plugins.list_names('sandboxes'))}", param, ctx)
        return value


class Seconds(click.ParamType):  # type: ignore[type-arg]  # generic for the type checker alone
    """Seconds, or a number with a unit: 90s, 5m, 1h."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from holdfast.reading.durations import parse_duration

        text = str(value)
        duration_ms = parse_duration(f"{text}s" if text.replace(".", "", 1).isdecimal() else text)
        if not duration_ms:
            self.fail(f"{value!r} is not a time: write 90 (seconds), 90s, 5m or 1h", param, ctx)
        return duration_ms / 1000


class ShardOf(click.ParamType):  # type: ignore[type-arg]  # generic for the type checker alone
    """One shard of several, such as 2/4."""

    name = "shard"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from holdfast.plan.select import Shard

        number, _, of = str(value).partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= MAX_SHARDS):
            self.fail(f"{value!r} is not a shard: write 2/4 for the second of four", param, ctx)
        return Shard(int(number), int(of))


_RUNS_OFFERED = 50
"""Number of runs to offer, newest first."""
_LARGEST = 100_000
"""Maximum size, in bytes, of a spec that is read for completion."""
_PLAIN = re.compile(r"[\w.@%+=:,/~ -]+")
"""A word that needs no quoting except for spaces: a file from someone else must not insert a command into the shell."""
_SUFFIXES = (".yaml", ".yml")


def complete_word(what: str, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Return the words of a kind that start with the incomplete word."""
    matches: Iterable[str] = ()
    with suppress(OSError, ValueError, RecursionError):
        words = _WORDS[what](ctx, incomplete)
        matches = [word for word in words if word.startswith(incomplete) and _PLAIN.fullmatch(word)]
    return [CompletionItem(word) for word in dict.fromkeys(matches)]


def _list_runs(ctx: click.Context, _incomplete: str) -> Iterator[str]:
    yield "latest"
    with use_runs_folder(ctx.meta.get(OPTION)):  # the context that had set it is closed when words are completed
        folder = get_runs_folder(ctx.params.get("config"))
    names = [entry.name for entry in os.scandir(folder) if entry.name.isdigit()]
    yield from sorted(names, key=int, reverse=True)[:_RUNS_OFFERED]


def _list_specs(_ctx: click.Context, incomplete: str) -> Iterator[str]:
    """List YAML files, and folders that may contain them."""
    folder = os.path.dirname(incomplete)
    for entry in sorted(os.scandir(folder or "."), key=lambda entry: entry.name):
        if entry.name.startswith(".") and not os.path.basename(incomplete).startswith("."):
            continue
        if entry.is_dir():
            yield os.path.join(folder, entry.name) + "/"
        elif entry.name.endswith(_SUFFIXES):
            yield os.path.join(folder, entry.name)


def _list_faults(_ctx: click.Context, _incomplete: str) -> Iterator[str]:
    for family in plugins.BUILT_IN:
        if family.startswith("faults."):
            yield from plugins.list_names(family)


def _list_profiles(_ctx: click.Context, _incomplete: str) -> Iterator[str]:
    from holdfast.faults import profiles

    yield from profiles.list_profiles()


def _list_recipes(_ctx: click.Context, _incomplete: str) -> Iterator[str]:
    from holdfast.starter.recipe import list_names

    yield from list_names()


def _list_scenarios(ctx: click.Context, _incomplete: str) -> Iterator[str]:
    for matrix in _read_sections(ctx, "chaos_matrix"):
        yield from (str(scenario.get("name", "")) for scenario in _filter_mappings(matrix))


def _list_rules(ctx: click.Context, _incomplete: str) -> Iterator[str]:
    for rules in _read_sections(ctx, "invariants"):
        if isinstance(rules, dict):
            yield from map(str, rules)
        yield from (str(rule.get("id", "")) for rule in _filter_mappings(rules))


def _read_sections(ctx: click.Context, key: str) -> Iterator[Any]:
    """Read the values of a key: at the top level of the spec, and in its contract."""
    spec = _read_spec(ctx)
    contract = spec.get("contract")
    yield spec.get(key)
    if isinstance(contract, dict):
        yield contract.get(key)


def _filter_mappings(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _read_spec(ctx: click.Context) -> dict[str, Any]:
    """Read the spec that the command line names, or the default one in this folder."""
    import yaml

    path_given = ctx.params.get("config") or ctx.params.get("file")
    path = next((name for name in (path_given, *DEFAULT_FILES) if name and os.path.isfile(name)), None)
    if path is None or os.path.getsize(path) > _LARGEST:
        return {}
    with open(path, encoding="utf-8") as file:
        try:
            content = yaml.safe_load(file)
        except yaml.YAMLError:
            return {}
    return content if isinstance(content, dict) else {}


_WORDS: dict[str, Callable[[click.Context, str], Iterable[str]]] = {
    "checks": lambda *_: plugins.list_names("checks"),
    "faults": _list_faults,
    "profiles": _list_profiles,
    "recipes": _list_recipes,
    "rules": _list_rules,
    "runs": _list_runs,
    "scenarios": _list_scenarios,
    "specs": _list_specs,
}


@click.command(name="completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print a script that lets TAB complete commands, options, runs, specs, faults, checks and names of your spec.

    \b
      eval "$(holdfast completion bash)"            # in ~/.bashrc
      eval "$(holdfast completion zsh)"             # in ~/.zshrc, after compinit
      holdfast completion fish > ~/.config/fish/completions/holdfast.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from holdfast.cli.main import root

    completion = get_completion_class(shell)
    assert completion is not None  # it is one of the three
    # Not the class's own `source`: that of bash starts a bash to ask for its version.
    sys.stdout.write(ShellComplete.source(completion(root, {}, "holdfast", "_HOLDFAST_COMPLETE")).lstrip("\n"))
