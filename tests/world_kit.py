"""Small fakes of a world: a sandbox over a plain folder, a database and a mock that say what they are given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import OutsideError, QueryFailed
from holdfast.execute.context import LiveContext
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import AuditEvent, Evidence, Isolation, ServiceSpec
from holdfast.protocols.check import Exhibit
from holdfast.protocols.sandbox import CommandResult, FileChange
from holdfast.protocols.service import Recorded, Rows, Service

TRIAL = Trial("abcdefabcdef", "contract", Scenario("calm"), Task(("Send the mail",)), params={"model": "m"})
SILENT = Observation(TRIAL.id)


class FolderSandbox:
    """A workspace that is a folder; `ran` is what every command comes to."""

    def __init__(self, folder: Path, ran: CommandResult | None = None, changes: Sequence[FileChange] = ()) -> None:
        self.folder = folder
        self.workspace = "/workspace"
        self.home = "/home/agent"
        self.isolation: tuple[Isolation, ...] = ()
        self.ran = ran or CommandResult(0)
        self.orders: list[tuple[tuple[str, ...], dict[str, Any]]] = []
        self._find_changes = changes

    async def run(self, argv: Sequence[str], env: Mapping[str, str], **how: Any) -> CommandResult:
        self.orders.append((tuple(argv), {"env": dict(env), **how}))
        return CommandResult(0) if "-n" in argv else self.ran  # a shell that only parses its command

    def changes(self) -> Iterable[FileChange]:
        return iter(self._find_changes)

    def find(self, path: str) -> Path | None:
        place = self.folder / path
        if not place.resolve().is_relative_to(self.folder.resolve()):
            raise OutsideError(f"{path} is not in the workspace")
        return place if place.exists() else None

    def view(self) -> Path:
        return self.folder

    def home_view(self) -> Path:
        home = self.folder.with_name("home-of-it")
        home.mkdir(exist_ok=True)
        return home


class FakeDatabase:
    """Answers queries by a function; a QueryFailed or TimeoutError that it gives is raised."""

    def __init__(self, answer: Callable[[str], Rows | Exception], name: str = "db") -> None:
        self.spec = ServiceSpec(name, "postgres", ports=(5432,))
        self.upstream: tuple[str, int] | str = "/run/db/.s.PGSQL.5432"
        self.variables: Mapping[str, str] = {}
        self.notes: tuple[str, ...] = ()
        self.asked: list[str] = []
        self._answer = answer

    async def query(self, sql: str, *, timeout_s: float, keep: int = 100) -> Rows:
        self.asked.append(sql)
        found = self._answer(sql)
        if isinstance(found, Exception):
            raise found
        return found

    async def execute(self, sql: str) -> None:
        self.asked.append(sql)

    async def prepare(self, sql: str) -> None:
        found = self._answer(sql)
        if isinstance(found, QueryFailed):
            raise found

    async def writes(self) -> Iterable[AuditEvent]:
        return ()

    async def mark(self) -> None:
        """Nothing is counted."""

    async def close(self) -> None:
        """Nothing is open."""


class FakeMock:
    """A mock that has been asked already."""

    def __init__(self, *requests: Recorded, name: str = "smtp", dropped: int = 0) -> None:
        self.spec = ServiceSpec(name, "http_mock", settings={"record": True})
        self.upstream: tuple[str, int] | str = ("127.0.0.1", 4711)
        self.variables: Mapping[str, str] = {}
        self.notes: tuple[str, ...] = ()
        self.requests: Sequence[Recorded] = requests
        self.dropped = dropped

    async def close(self) -> None:
        """Nothing is open."""


class FakeWorld:
    """A world of such parts."""

    def __init__(
        self,
        folder: Path,
        *services: Service,
        ran: CommandResult | None = None,
        changes: Sequence[FileChange] = (),
        audit: Sequence[AuditEvent] = (),
    ) -> None:
        self.trial = TRIAL
        self.context: Any = LiveContext(TRIAL)
        self.root = folder
        self.sandbox: Any = FolderSandbox(folder, ran, changes)
        self.environ: Mapping[str, str] = {"PATH": "/usr/bin:/bin", "DB_HOST": "db", "DB_PORT": "5432"}
        self.services: dict[str, Service] = {one.spec.name: one for one in services}
        self.audit_log = folder / "audit.jsonl"
        self.trace_log = folder / "trace.jsonl"
        self.lent: dict[str, bytes] = {}
        self.foreseen: dict[tuple[str, ...], object] = {}
        self.remembered: dict[tuple[str, ...], object] = {}
        self.audit_gaps: Mapping[str, str] = {}
        self._audit = audit

    def lend(self, name: str, content: bytes) -> str:
        self.lent[name] = content
        return f"/run/holdfast/{name}"

    def view(self) -> Path:
        return self.sandbox.view()

    def changes(self) -> Iterable[FileChange]:
        return self.sandbox.changes()

    def audit(self) -> Iterator[AuditEvent]:
        return iter(self._audit)


def rows(*found: Sequence[Any], columns: Sequence[str] = ("value",), count: int | None = None) -> Rows:
    """The result of a query."""
    return Rows(tuple(columns), tuple(tuple(row) for row in found), len(found) if count is None else count)


def request(method: str = "POST", path: str = "/api/messages", body: str = "", **more: Any) -> Recorded:
    """A request that reached a mock; `headers` is a mapping."""
    headers = tuple(more.pop("headers", {}).items())
    status, cut = more.pop("status", 202), more.pop("cut", False)
    return Recorded(method, path, more.pop("query", ""), headers, body, status, "", 0.0, cut)


def shown(evidence: Evidence | None, *said: str, **more: Any) -> Exhibit:
    """An exhibit with evidence, as it comes back from storage; `said` are the agent's turns."""
    import msgspec

    stored = None
    if evidence is not None:
        stored = msgspec.json.decode(msgspec.json.encode(evidence), type=Evidence)
    turns = tuple(Turn("?", text) for text in said)
    last = turns[-1] if turns else Turn("?", None, ending="crashed")
    return Exhibit(last.text or "", last, Observation(TRIAL.id, turns, **more), evidence=stored)


def gathered(check: Any, world: Any, *said: str) -> Exhibit:
    """What the check records in that world, ready to be judged."""
    return shown(run(check.gather(world, SILENT)), *said)


def run(what: Awaitable[Any]) -> Any:
    async def play() -> Any:
        return await what

    return asyncio.run(play())
