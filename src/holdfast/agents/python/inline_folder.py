"""The surroundings of an inline agent in Holdfast's process: its folder, its environment, its output."""

from __future__ import annotations

import importlib.machinery
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from holdfast.errors import UserError
from holdfast.processes.pipes import OUTPUT_KEPT


class Output(io.TextIOBase):
    """Captures output and keeps its end."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0
        self.printed = 0
        """Characters since the last call of `take`."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._parts.append(text)
        self._size += len(text)
        self.printed += len(text)
        if self._size > 4 * OUTPUT_KEPT:
            self._parts = ["".join(self._parts)[-OUTPUT_KEPT:]]
            self._size = len(self._parts[0])
        return len(text)

    def collect(self) -> tuple[str, tuple[str, ...]]:
        """Return the end of the output since the last call, and a note if there was more."""
        if not self._parts:
            return "", ()
        text = "".join(self._parts)[-OUTPUT_KEPT:]
        note = f"{self.printed} characters were printed; the last {OUTPUT_KEPT} are kept"
        notes = (note,) if self.printed > OUTPUT_KEPT else ()
        self._parts, self._size, self.printed = [], 0, 0
        return text, notes


class InlineFolder:
    """The spec's folder, on the path and as working directory while the agent runs."""

    def __init__(self, root: Path, env: Mapping[str, str]) -> None:
        self._root = str(root)
        self._modules = set(sys.modules)
        self._env = {name: os.environ.get(name) for name in env}
        self._here = self._there = -1
        if Path.cwd() != root.resolve():  # Holdfast's own relative paths must stay valid between trials
            self._here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
            self._there = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        sys.path.insert(0, self._root)
        os.environ.update(env)

    def __enter__(self) -> None:
        if self._there >= 0:
            os.fchdir(self._there)

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._here >= 0:
            os.fchdir(self._here)

    def check(self) -> None:
        """Reject a module next to the spec that hides a library which Holdfast needs."""
        # The folder was first while the agent was imported, as its author expects. From now on it comes last, so that a
        # file of the user's does not replace a library that Holdfast imports later.
        sys.path.remove(self._root)
        sys.path.append(self._root)
        for name in self._list_own_modules():
            others = [place for place in sys.path if place != self._root]
            if "." in name or name in self._modules:
                continue
            if name in sys.stdlib_module_names or importlib.machinery.PathFinder.find_spec(name, others) is not None:
                raise UserError(
                    f"{name} next to the spec hides the module {name!r} that Holdfast may need in this process",
                    code="agent-config-invalid",
                    hint="rename it, or use isolation: fresh",
                )

    def close(self) -> None:
        """Restore the process to its original state."""
        if self._root in sys.path:
            sys.path.remove(self._root)
        for name in self._list_own_modules():
            if name not in self._modules:
                del sys.modules[name]
        for name, value in self._env.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        for fd in (self._here, self._there):
            if fd >= 0:
                os.close(fd)
        self._here = self._there = -1

    def _list_own_modules(self) -> list[str]:
        prefix = self._root + os.sep
        modules = []
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            if spec is not None and str(spec.origin).startswith(prefix):
                modules.append(name)
        return modules
