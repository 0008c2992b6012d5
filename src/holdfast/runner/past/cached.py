"""`--cached`: reuses a stored run if nothing has changed.

The agent's own digest covers the files that the spec names. Here every file next to the spec counts, every installed
package, and every variable that the agent inherits, because an agent may import or read any of them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UsageError, UserError
from holdfast.model.codec import create_decoder, digest, encode_canonical, make_encodable
from holdfast.model.score import Score
from holdfast.model.spec import Spec
from holdfast.plan import RunOptions
from holdfast.reading.tree import parse
from holdfast.runner.agent_files import LARGE, ImportedFiles, digest_agent, digest_agent_files, digest_file
from holdfast.runner.job import Job
from holdfast.spec.explain import read_source
from holdfast.spec.references import find_variables
from holdfast.spec.secrecy import iter_scalars
from holdfast.store.run_folders import list_parts, list_stored_runs
from holdfast.store.rundir import Manifest, RunDir
from holdfast.version import __version__

MOST_FILES = 20_000
"""Files next to a spec that are read. A folder with more is not a project, and reading it would take longer than the
run.
"""
DECIDED = (0, 1, 5)
"""Exit codes of runs that reached a verdict; a run with a harness error is repeated."""
_FIXED = ("static:", "generated")
"""Sources of secrets whose values follow from the spec and its seed."""
PATH_MOST = 256
"""Characters; a longer word is not a path."""
_PATH_LITERAL = re.compile(rb"""["']((?:~|\.\.?)?/[^"'\n\x00]{1,250}|\.\.)["'](?!\s*,\s*["'][wax])""")
"""A path to another place in the text of a program; a file that is opened for writing is a result."""
_PATH_WORD = re.compile(rb"""(>\s*)?["']?((?:~|\.\.?)?/[^\s"'`;|&<>(){}$\\\x00]{1,250})""")
"""The same in a program that is not Python, where paths may stand without quotes; `> path` is a result."""
_PASSED_OVER = frozenset({
    ".git", ".hg", ".holdfast", ".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".svn", ".tox", "__pycache__",
})  # fmt: skip
"""Folders that tools write and no agent reads."""
_BY_TIME = "node_modules"
"""A folder whose files are too many to read: they are compared by size and time."""
NOT_COMPARED = frozenset({
    "_", "BASHOPTS", "HISTCONTROL", "HISTFILE", "HISTFILESIZE", "HISTSIZE", "OLDPWD", "PS1", "PS2", "PS4", "PWD",
    "SHELL", "SHELLOPTS", "SHLVL",
    "COLORTERM", "COLUMNS", "LINES", "LS_COLORS", "SSH_TTY", "STY", "TERM", "TERMCAP", "TERMINFO", "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION", "TERM_SESSION_ID", "TMUX", "TMUX_PANE", "VTE_VERSION", "WINDOW", "WINDOWID",
    "EPOCHREALTIME", "EPOCHSECONDS", "RANDOM", "SECONDS", "SRANDOM",
    "ALACRITTY_WINDOW_ID", "DBUS_SESSION_BUS_ADDRESS", "GNOME_TERMINAL_SCREEN", "INVOCATION_ID", "ITERM_SESSION_ID",
    "JOURNAL_STREAM", "KITTY_WINDOW_ID", "SESSION_MANAGER", "SSH_AGENT_PID", "SSH_AUTH_SOCK", "SSH_CLIENT",
    "SSH_CONNECTION", "SYSTEMD_EXEC_PID", "WEZTERM_PANE", "WT_SESSION", "XDG_SESSION_ID",
    "GITHUB_ACTION", "GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_RUN_ATTEMPT", "GITHUB_RUN_ID",
    "GITHUB_RUN_NUMBER", "GITHUB_STATE", "GITHUB_STEP_SUMMARY", "RUNNER_NAME", "RUNNER_TRACKING_ID",
    "CI_CONCURRENT_ID", "CI_CONCURRENT_PROJECT_ID", "CI_JOB_ID", "CI_JOB_STARTED_AT", "CI_JOB_URL",
    "CI_PIPELINE_CREATED_AT", "CI_PIPELINE_ID", "CI_PIPELINE_IID", "CI_PIPELINE_URL", "CI_RUNNER_ID",
    "BUILD_BUILDID", "BUILD_BUILDNUMBER", "BUILD_DISPLAY_NAME", "BUILD_ID", "BUILD_NUMBER", "BUILD_TAG", "BUILD_URL",
    "BUILDKITE_BUILD_ID", "BUILDKITE_BUILD_NUMBER", "BUILDKITE_BUILD_URL", "BUILDKITE_JOB_ID", "CIRCLE_BUILD_NUM",
    "CIRCLE_BUILD_URL", "CIRCLE_WORKFLOW_ID", "CIRCLE_WORKFLOW_JOB_ID", "EXECUTOR_NUMBER", "SYSTEM_JOBID",
})  # fmt: skip
"""Variables of the shell, terminal, session, CI job and time. They change from one command to the next, and no agent
depends on them.
"""


def refuse_uncacheable(spec: Spec, options: RunOptions) -> None:
    """Raise UsageError if it is unknown whether the agent is the same, or if the options ask for a fresh run."""
    unknown = _find_unreadable(spec)
    if unknown:
        problem = f"--cached: {unknown}, so Holdfast cannot tell whether its code has changed"
        raise UsageError(problem, code="cache-impossible", hint="leave --cached out")
    for option, is_set in (("--record", options.record is not None), ("--keep", options.keep)):
        if is_set:
            raise UsageError(
                f"--cached and {option} cannot be combined",
                code="options-conflict",
                hint=f"{option} needs the agent to be asked",
            )


def _find_unreadable(spec: Spec) -> str:
    """Return the part of the agent whose files cannot be read from here; empty if there is none."""
    agent, root = spec.agent, Path(spec.path).resolve().parent
    if agent.is_python:
        module = agent.endpoint.partition(":")[0]
        place = root.joinpath(*module.split("."))
        is_local = os.path.isfile(place.with_suffix(".py")) or os.path.isdir(place)
        return "" if is_local else f"the agent's module {module} is not next to the spec"
    if not agent.launched:
        return "this agent is already running"
    words = [*(agent.command or "").split(), agent.binary or "", *agent.args]
    has_file = any(word and len(word) < 256 and os.path.isfile(root / word.strip("'\"")) for word in words)
    return "" if has_file else "the agent's command names no file next to the spec"


def list_variables(job: Job) -> tuple[str, ...]:
    """List values that the spec refers to but does not contain, and that no run stores: variables and secrets."""
    world = job.spec.world
    secrets = [one for one in (world.secrets if world is not None else ()) if not one.source.startswith(_FIXED)]
    root, _ = parse(read_source(job.spec))  # only values: names in comments do not count
    written = [node.text for node in iter_scalars(root)] if root is not None else []
    texts = (*written, *job.spec.secrets, *job.spec.passed_on)
    return (*find_variables(texts, job.environ), *(one.name for one in secrets))


def digest_files(job: Job, but_for: Collection[Path] = ()) -> str:
    """Digest every file next to and below the spec, the installed packages and the inherited environment."""
    root = Path(job.spec.path).resolve().parent
    left_out = {path.resolve() for path in but_for}
    entries: list[list[str]] = []
    for folder in (root, *_find_editable()):
        read = 0
        for name, path in _walk_files(folder):
            if path in left_out or left_out.intersection(path.parents):
                continue
            by_time = _BY_TIME in path.parts[len(folder.parts) :]
            entries.append([name, digest_file(path, by_time=by_time)])
            read += not by_time
            if read > MOST_FILES:
                hint = "put the spec into a folder with its agent, or leave --cached out"
                raise UsageError(
                    f"--cached: there are more than {MOST_FILES} files in {folder}", code="cache-impossible", hint=hint
                )
    entries += ([str(path), one] for path, one in sorted(_digest_outside(job, root).items()))
    recording = digest_file(job.options.replay) if job.options.replay else ""
    derived = digest(encode_canonical([job.spec.tasks, job.spec.invariants]), 16)
    everything = [entries, recording, derived, sys.version, _list_packages(), _list_environment(job)]
    return digest(encode_canonical(everything).decode("utf-8", "replace").encode(), 16)


def _digest_outside(job: Job, root: Path) -> dict[Path, str]:
    """Digest the files elsewhere that the agent's code, command or variables name, and the modules it imports there.

    A path that is put together at runtime cannot be known without running the agent.
    """
    agent = job.spec.agent
    paths_named = [
        (root, word) for word in (*(agent.command or "").split(), *agent.args, *map(str, agent.env.values()))
    ]
    paths = (job.environ.get("PYTHONPATH", "") + os.pathsep + str(agent.env.get("PYTHONPATH", ""))).split(os.pathsep)
    paths_named += [(root, path) for path in paths if path]
    for path in (root / name for name in digest_agent_files(job.spec)):
        text = path.read_bytes() if path.stat().st_size < LARGE else b""
        paths_named += [(base, word) for word in _find_paths(text, path.suffix) for base in (root, path.parent)]
    imported = ImportedFiles()
    folders = [root]
    for base, word in paths_named:
        written = os.path.expanduser(word.strip("'\""))
        place = Path(os.path.normpath(base / written)) if len(word) < PATH_MOST else root
        # Folders above the spec are not import roots, and everything below it is compared in any case.
        if root.is_relative_to(place) or place.is_relative_to(root):
            continue
        if os.path.isfile(place):
            imported.add(place, (root, place.parent))
        elif os.path.isdir(place):
            folders.append(place)
    # A second pass: the folders outside the project are known only now, and the agent's own files may import modules
    # from them.
    if len(folders) > 1:
        for path in (root / name for name in digest_agent_files(job.spec)):
            imported.add(path, tuple(dict.fromkeys(folders)))
    return {path: one for path, one in imported.digests.items() if not path.is_relative_to(root)}


def _find_paths(text: bytes, suffix: str) -> list[str]:
    """Return the paths that the text of a program contains."""
    if suffix == ".py":
        words = [one[1] for one in _PATH_LITERAL.finditer(text)]
    else:
        words = [] if b"\0" in text else [one[2] for one in _PATH_WORD.finditer(text) if not one[1]]
    return sorted({word.decode("utf-8", "replace") for word in words})


def _list_environment(job: Job) -> list[list[str]]:
    """Return the variables that an agent inherits without a sandbox; in a sandbox it gets only those that the spec
    names.
    """
    if job.spec.world is not None:
        return []
    return sorted([name, value] for name, value in job.environ.items() if name not in NOT_COMPARED)


def digest_variables(job: Job) -> dict[str, str]:
    """Return a few digits of a digest for each compared variable: enough to detect a change, too few to reveal the
    value.
    """
    return {make_encodable(name): digest(make_encodable(value).encode(), 2) for name, value in _list_environment(job)}


def _walk_files(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield each file below a folder, also behind links: its name there and its real path. A link to a folder counts,
    too.
    """
    visited = set()
    for folder, below, names in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        below[:] = sorted(name for name in below if name not in _PASSED_OVER)
        # A link may lead to a folder that was walked before, or to one above, where the walk would never end.
        is_known = real in visited or (folder != str(root) and os.path.basename(real) in _PASSED_OVER)
        if is_known or "pyvenv.cfg" in names:  # the packages of a virtual environment are compared by name and version
            below[:] = []
            continue
        visited.add(real)
        for name in below:
            if os.path.islink(f"{folder}/{name}"):
                yield f"{os.path.relpath(folder, root)}/{name} -> {os.readlink(f'{folder}/{name}')}", Path(real, name)
        for name in sorted(names):
            path = Path(real, name)
            if not name.endswith(".pyc") and name != ".git" and os.path.isfile(path):  # reading a pipe would never end
                yield os.path.relpath(f"{folder}/{name}", root), path


def _list_packages() -> list[str]:
    return sorted({f"{one.metadata['Name']} {one.version}" for one in distributions()})


def _find_editable() -> list[Path]:
    """List the folders of editable installs, whose version does not identify their content."""
    folders = set()
    for one in distributions():
        try:
            installed = create_decoder(_DirectUrl).decode(one.read_text("direct_url.json") or "{}")
        except ValueError:
            continue
        if installed.url.startswith("file:") and installed.dir_info.get("editable"):
            folders.add(Path(unquote(urlsplit(installed.url).path)))
    return sorted(folders)


class _DirectUrl(Struct, frozen=True):
    """The content of `direct_url.json` of an installed package."""

    url: str = ""
    dir_info: dict[str, bool] = {}


def find_cached_run(runs: Path, job: Job) -> RunDir | None:
    """Return the newest `--cached` run with the same agent and options that reached a verdict.

    Only runs made with `--cached` are considered: others do not record the files next to their spec.
    """
    for run, manifest in _iter_runs(runs, job):
        with suppress(UserError, OSError):  # a run that cannot be read cannot be reused
            if manifest.files == job.files and _has_verdict(run):
                return run
    return None


def _iter_runs(runs: Path, job: Job) -> Iterator[tuple[RunDir, Manifest]]:
    """Yield the `--cached` runs with the same agent and options, newest first; unreadable ones are skipped."""
    options = replace(job.options, part=job.spec.part, replay=job.options.replay and job.options.replay.resolve())
    agent_digest = digest_agent(job.spec, digest_agent_files(job.spec))
    inputs = (job.spec.digest, agent_digest, job.spec.seed, job.spec.settled)
    wanted = (__version__, str(Path(job.spec.path).resolve()), *inputs, _drop_irrelevant(options))
    for path in reversed([one for run in list_stored_runs(runs) for one in (run, *list_parts(run))]):
        with suppress(UserError, OSError):
            run = RunDir(path)
            one = run.read_manifest()
            inputs = (one.spec_digest, one.agent_digest, one.seed, one.settled)
            if one.files and (one.version, one.file, *inputs, _drop_irrelevant(one.options)) == wanted:
                yield run, one


def find_changed_variables(runs: Path, job: Job) -> list[str]:
    """Return the names of variables that differ from the newest comparable `--cached` run."""
    for _, manifest in _iter_runs(runs, job):
        before, now = manifest.variables, digest_variables(job)
        return sorted(name for name in now.keys() | before if now.get(name) != before.get(name))
    return []


def _drop_irrelevant(options: RunOptions) -> RunOptions:
    """Return the options that a verdict may depend on; the number of parallel trials is not one of them."""
    return replace(options, concurrency=None, record=None, keep=False, allow_commands=False)


def _has_verdict(run: RunDir) -> bool:
    ended, score = run.read_end(), run.path / "score.json"
    if ended is None or not ended.complete or ended.unrun or ended.unasked or not score.is_file():
        return False
    try:
        return create_decoder(Score).decode(score.read_bytes()).exit_code in DECIDED
    except ValueError:  # not JSON, or not a score
        return False
