"""The files that identify an agent: those named in the spec, and the local modules that they import."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import UNSET

from holdfast.model.codec import digest, encode_canonical
from holdfast.model.spec import Spec
from holdfast.plan import encode_agent

LARGE = 16 << 20
"""Files from this size in bytes on are identified by size and modification time: an interpreter or a model is not read
for each run.
"""
_Folders = tuple[Path, ...]
# Imports are found by a pattern and not by parsing: a file that needs another Python, or is broken, must count, too. A
# name too many does no harm, because only existing local files are added.
_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(?P<package>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n#;]+)"
    rb"|import[ \t]+(?P<modules>[^\n#;]+))"
    rb"|\b(?:import_module|__import__)\(\s*[\"'](?P<quoted>[\w.]+)[\"']",
    re.MULTILINE,
)
_NAME = re.compile(rb"\s*([.\w]+|\*)")
"""An imported name. For `*` only the module before it is looked up."""


def digest_agent_files(spec: Spec) -> dict[str, str]:
    """Digest every file of the agent, by its path relative to the spec's folder."""
    root = Path(spec.path).resolve().parent
    folders = (root, *([root / spec.agent.dir] if spec.agent.dir else ()))
    imported = ImportedFiles()
    for module in _list_modules(spec):
        imported.add_module(module, folders)
    for file in _find_command_files(spec, root):
        imported.add(file, tuple(dict.fromkeys((file.parent, *folders))))  # a program first imports from its own folder
    return {os.path.relpath(file, root): one for file, one in imported.digests.items()}


def digest_agent(spec: Spec, files: Mapping[str, str]) -> str:
    """Digest the agent section together with the agent's files."""
    return digest(encode_canonical([encode_agent(spec.agent).decode("utf-8", "replace"), sorted(files.items())]), 16)


def _list_modules(spec: Spec) -> list[str]:
    """Return the modules named in the agent section."""
    agent = spec.agent
    paths = [ref.path for ref in (*agent.tools, *agent.llm)]
    paths += [p for p in (agent.tool_registry, agent.reset_function) if p]
    paths += [agent.endpoint] if agent.is_python else []
    return sorted({path.partition(":")[0] for path in paths})


def _find_command_files(spec: Spec, root: Path) -> Iterator[Path]:
    """Yield the files next to the spec that a command names, and those that define its models, servers and users."""
    agent = spec.agent
    words = [*(agent.command or "").split(), agent.binary or "", *agent.args]
    read = [model.script for model in spec.models.values() if model.script]
    read += [task.user.script for task in spec.tasks if task.user is not UNSET]
    read += [agent.mcp_config] if isinstance(agent.mcp_config, str) else []
    for word in dict.fromkeys([*words, *read]):
        place = root / word.strip("'\"")
        if word and len(word) < 256 and os.path.isfile(place):  # never raises
            yield place


class ImportedFiles:
    """Collects files with their digests. Python files bring along the local modules that they import."""

    def __init__(self) -> None:
        self.digests: dict[Path, str] = {}
        self._added: set[tuple[Path, _Folders]] = set()

    def add_module(self, name: str, folders: _Folders, where: _Folders | None = None) -> None:
        """Add a module and its parent packages if `where` contains them; installed packages are left out.

        `folders` are the import roots of the program that the module belongs to.
        """
        words = name.split(".")
        for folder in where or folders:
            for count in range(1, len(words) + 1):
                place = folder.joinpath(*words[:count])
                for file in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
                    if os.path.isfile(file):
                        self.add(file, folders)

    def add(self, file: Path, folders: _Folders) -> None:
        """Add a file and what it imports from these folders."""
        if (file, folders) in self._added:
            return
        self._added.add((file, folders))
        if file not in self.digests:
            self.digests[file] = digest_file(file)
        if file.suffix == ".py":
            for name, where in _find_imports(file, folders):
                self.add_module(name, folders, where)


def _find_imports(file: Path, folders: _Folders) -> Iterator[tuple[str, _Folders]]:
    """Yield each imported name with the folders to search; names that are not modules are in none of them."""
    try:
        text = b"" if file.stat().st_size > LARGE else file.read_bytes()
    except OSError:
        return
    for match in _IMPORT.finditer(text.replace(b"\\\n", b" ")):
        package = (match["package"] or b"").decode("ascii", "replace")
        above = len(package) - len(package.lstrip("."))
        where = (file.parents[min(above, len(file.parents)) - 1],) if above else folders
        listed = match["names"] or match["modules"] or match["quoted"] or b""
        stem = f"{package.lstrip('.')}." if package.lstrip(".") else ""
        for one in listed.strip(b"()").split(b","):
            if name := _NAME.match(one):
                yield (stem + name[1].decode("ascii", "replace")).strip("."), where


def digest_file(path: Path, *, by_time: bool = False) -> str:
    """Digest a file's content; for a large file its size and time, for an unreadable one the error."""
    try:
        stat = path.stat()
        if by_time or stat.st_size > LARGE:
            return f"{stat.st_size} bytes of {stat.st_mtime_ns}"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").digest().hex()[:32]
    except OSError as refused:
        return f"unreadable: {refused.strerror}"


def describe_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Describe every file that changed, was added or was removed."""
    changes = []
    for name in sorted({*before, *now}):
        if name not in now:
            changes.append(f"{name} is missing or no longer imported")
        elif name not in before:
            changes.append(f"{name} is new")
        elif before[name] != now[name]:
            changes.append(f"{name} changed")
    return changes
