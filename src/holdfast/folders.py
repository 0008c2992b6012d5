"""Where Holdfast keeps things: the default spec file, the runs, and everything that goes with them.

The only module that reads `--runs-dir` and HOLDFAST_DIR. Whatever is stored asks here for its folder:

- `--runs-dir DIR`: runs are in DIR, and so is the rest. If DIR is `.holdfast/runs`, the rest is in that `.holdfast`.
- HOLDFAST_DIR: the folder used in place of `.holdfast`, wherever the spec is.
- else `.holdfast` next to the spec; for a command without a spec, and for a spec built in Python, in this folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from holdfast.errors import UsageError

DEFAULT_FILES = ("holdfast.yaml", "flakestorm.yaml")
"""The specs that a command looks for in this folder."""
OWN = ".holdfast"
"""The folder that Holdfast makes for itself."""
OPTION = "--runs-dir"
HOME = "HOLDFAST_DIR"
"""The variable that names another folder than `.holdfast`."""
KEPT = "kept"
HUNTS = "hunts"
JUDGE_CACHE = "judge-cache"
USER_CACHE = "user-cache"
MUTATION_CACHE = os.path.join("cache", "mutations")
REPLAYS = "replays"
HISTORY = "history"
OWN_FILES = (
    ".gitignore",
    "cache",
    "gateway",
    "gateway.json",
    "gateway.lock",
    "gateway.sock",
    HISTORY,
    HUNTS,
    JUDGE_CACHE,
    KEPT,
    "notes.jsonl",
    "notes.lock",
    REPLAYS,
    "schema.json",
    USER_CACHE,
)
"""Everything that may be in the own folder, runs aside."""

_PACKAGE = Path(__file__).resolve().parent
_chosen: ContextVar[Path | None] = ContextVar("runs_dir", default=None)


@contextmanager
def use_runs_folder(folder: Path | None) -> Iterator[None]:
    """Store and look up runs in that folder, wherever their spec is; None changes nothing."""
    if folder is None:
        yield
        return
    token = _chosen.set(folder)
    try:
        yield
    finally:
        _chosen.reset(token)


def get_runs_folder(spec: str | Path | None = None) -> Path:
    """Return the folder of the spec's runs; without a spec, that of the current folder."""
    return _chosen.get() or _get_home(spec) / "runs"


def get_local_runs_folder() -> Path:
    """Return the folder in which a later command looks for runs, unless an option names another one."""
    return _get_home(None) / "runs"


def get_own_folder(spec: str | Path | None = None) -> Path:
    """Return the folder for everything else that belongs to the spec; without a spec, to the current folder."""
    return get_own_folder_of(get_runs_folder(spec))


def get_own_folder_of(runs: Path) -> Path:
    """Return the folder for everything else of these runs: their parent if Holdfast made it, otherwise their own."""
    around = runs.absolute().parent
    home = os.environ.get(HOME)
    ours = around.name == OWN or (home and runs.absolute() == (Path(home) / "runs").absolute())
    return runs.parent if ours else runs


def format_path(path: Path) -> str:
    """Return the path as a command in the current folder takes it: relative if it is below that folder."""
    near = os.path.relpath(path)
    return str(path.absolute()) if near.startswith("..") else near


def shorten_path(path: str | Path) -> str:
    """Return the path relative to the current folder, if that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def _get_home(spec: str | Path | None) -> Path:
    if home := os.environ.get(HOME):
        return Path(home)
    if spec is None or not Path(spec).is_file():  # a spec that is piped in has no folder of its own
        return Path(OWN)
    file = Path(spec)
    if file.resolve().is_relative_to(_PACKAGE):  # the demo's specs: nothing is stored in the installed program
        return Path(OWN)
    return (file.resolve() if file.is_symlink() else file).parent / OWN


def find_config(path: Path | None) -> Path:
    """Return the named file, or the first default file that exists here."""
    if path is not None:
        return path
    for name in DEFAULT_FILES:
        if Path(name).is_file():
            return Path(name)
    raise UsageError(
        f"there is no {' or '.join(DEFAULT_FILES)} here",
        hint="name one with -c FILE, or create one: holdfast init",
        code="spec-missing",
    )
