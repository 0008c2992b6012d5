"""What the sandboxes of all backends have in common, and the workspace that is a folder of this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socket import socket

from holdfast.errors import HarnessError
from holdfast.model.world import Isolation
from holdfast.protocols.sandbox import FileChange, SandboxSpec
from holdfast.world.holders.surroundings import HOME, WORKSPACE
from holdfast.world.sandbox import tree
from holdfast.world.sandbox.paths import resolve


class OpenSandbox:
    """A sandbox with a network of its own, in which paths are where the spec wants them."""

    def __init__(self, sandbox_spec: SandboxSpec, isolation: tuple[Isolation, ...]) -> None:
        self.workspace = WORKSPACE
        self.home = HOME
        self.isolation = isolation
        self._sandbox_spec = sandbox_spec
        self._listeners: dict[tuple[str, int], socket] = {}
        self._frozen = False

    def listener(self, host: str, port: int) -> socket:
        return self._listeners[host, port]

    def address(self, host: str, port: int) -> tuple[str, int]:
        return host, port

    def inside(self, path: str) -> str:
        return path

    def _refuse_if_frozen(self) -> None:
        if self._frozen:
            raise HarnessError("the sandbox is frozen: nothing starts in it any more")

    def _close_listeners(self) -> None:
        for listener in self._listeners.values():
            listener.close()
        self._listeners.clear()


class FolderSandbox(OpenSandbox):
    """A sandbox whose workspace and home are folders of this machine: they are copied, and compared file by file."""

    def __init__(self, sandbox_spec: SandboxSpec, isolation: tuple[Isolation, ...], folder: Path) -> None:
        super().__init__(sandbox_spec, isolation)
        self._folder = folder
        self._root = folder / "workspace"
        self._before: list[tree.TreeEntry] = []
        self._seen: Path | None = None
        """The copy that scripts read, once it is made."""

    async def snapshot(self) -> None:
        self._before = await asyncio.to_thread(lambda: [*tree.entries(str(self._root))])

    def changes(self) -> Iterator[FileChange]:
        return tree.compared(iter(self._before), tree.entries(str(self._root)))

    def find(self, path: str) -> Path | None:
        root = os.open(self._root, os.O_PATH | os.O_DIRECTORY)
        try:
            found = resolve(root, self.workspace, path)
        finally:
            os.close(root)
        return None if found is None else self._root / found

    def view(self) -> Path:
        """A copy, made once: what a script does there changes nothing."""
        if self._seen is None:
            seen = self._folder / "view"
            tree.copy(self._root, seen)
            self._seen = seen
        return self._seen

    def home_view(self) -> Path:
        return self._folder / "home"


def remove(folder: Path) -> None:
    """Removes a folder of an agent's, also where it took its own rights away."""
    for at, folders, _ in os.walk(folder):
        for name in folders:
            if not os.path.islink(os.path.join(at, name)):
                with suppress(OSError):  # another's, or gone: then it stays
                    os.chmod(os.path.join(at, name), 0o700)
    shutil.rmtree(folder, ignore_errors=True)
