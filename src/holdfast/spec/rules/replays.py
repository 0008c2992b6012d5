"""The `replays:` section, the session files it names, and the contracts that sessions name: read with their places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import SpecError
from holdfast.model.codec import encode
from holdfast.model.scenario import Scenario
from holdfast.model.session import RecordedSession, ReplaySpec, SessionSource
from holdfast.model.spec import Invariant, Problem
from holdfast.model.task import DialogueMessage, RecordedFiring, RecordedResponse
from holdfast.reading.file import read_file
from holdfast.reading.node import Node
from holdfast.reading.reader import Bad, Reader
from holdfast.reading.tree import parse
from holdfast.spec.rules.matrix import MatrixEntry
from holdfast.spec.rules.rules import duplicates
from holdfast.spec.sections.file import ContractSection
from holdfast.spec.sections.run import ReplaySession, ReplaySource, ReplaysSection

_SHAPE = "a session has an id and an input; a list of them, or {sessions: [...]}, is several"


class NamedContract(Struct, frozen=True):
    """The contract of a file: its name and its rules, whatever its matrix is."""

    name: str
    rules: tuple[Invariant, ...]


def replay_value(section: ReplaysSection) -> ReplaySpec:
    """The section as a value; the files that it names are read when they are replayed."""
    sessions = (one.file if one.file is not None else _session(one, "") for one in section.sessions)
    return ReplaySpec(tuple(sessions), tuple(map(_source, section.sources)))


def replays_problems(reader: Reader, section: ReplaysSection, folder: Path | None) -> None:
    """Reports keys that are missing or written twice, and session files that cannot be used.

    `folder` is where the files lie; None: they were checked when the copy was made.
    """
    for index, session in enumerate(section.sessions):
        path = f"replays.sessions[{index}]"
        _needed(reader, session, path)
        if session.file is not None and folder is not None:
            _file_problem(reader, session, path, folder)
    inline = [(one, f"replays.sessions[{index}]") for index, one in enumerate(section.sessions)]
    _same_ids(reader, inline)
    for index, source in enumerate(section.sources):
        needed = "project" if source.type == "langsmith" else "run_id"
        if not source.at.has(needed):
            reader.error(source.at, f"replays.sources[{index}].{needed}", "missing", code="missing-key")


def read_sessions(path: Path, name: str = "") -> tuple[RecordedSession, ...]:
    """The sessions of a file, YAML or JSON; SpecError with everything that is wrong with it."""
    shown = name or str(path)
    file = read_file(path)
    if file.problem is not None:
        raise SpecError(shown, [file.problem], source=file.text)
    root, problems = parse(file.text)
    reader = Reader()
    reader.problems += problems
    read = list(_entries(reader, root)) if root is not None else []
    for entry, at in read:
        _needed(reader, entry, at, nested=True)
    _same_ids(reader, read)
    if any(problem.severity == "error" for problem in reader.problems):
        found = sorted(reader.problems, key=lambda one: (one.line, one.column))
        raise SpecError(shown, found, source=file.text)
    return tuple(_session(entry, shown) for entry, _ in read)


def read_contract(path: Path, name: str = "") -> NamedContract:
    """The `contract` section of a file, without its matrix; SpecError with everything that is wrong with it."""
    shown = name or str(path)
    file = read_file(path)
    if file.problem is not None:
        raise SpecError(shown, [file.problem], source=file.text)
    root, problems = parse(file.text)
    reader = Reader()
    reader.problems += problems
    section = _contract(reader, root) if root is not None else None
    if section is None or any(problem.severity == "error" for problem in reader.problems):
        raise SpecError(shown, reader.problems, source=file.text)
    return NamedContract(section.name or path.stem, tuple(rule.invariant for rule in section.invariants))


# -- parts --------------------------------------------------------------------------------------
def _entries(reader: Reader, root: Node) -> Iterator[tuple[ReplaySession, str]]:
    """Every session of the file that could be read, with its path."""
    node, start = root, ""
    if root.kind == "map" and root.has("sessions"):
        reader.unknown_keys(root, "", ("sessions",))
        node, start = root.get("sessions"), "sessions"
    listed = node.kind == "list"
    if not listed and (start or node.kind != "map"):
        reader.error(node, start, "expected a session or a list of sessions", hint=_SHAPE, code="wrong-type")
        return
    if listed and not node.items:
        reader.error(node, start, "there is no session in it", hint=_SHAPE, code="empty")
    for index, item in enumerate(node.items if listed else [node]):
        path = f"{start}[{index}]" if listed else start
        read = reader.section(ReplaySession, item, path)
        if not isinstance(read, Bad):
            yield read, path


def _needed(reader: Reader, session: ReplaySession, path: str, *, nested: bool = False) -> None:
    if session.file is not None and nested:
        message = "unknown key: this is the session's own file"
        reader.error(session.at.key("file"), f"{path}.file".lstrip("."), message, hint=_SHAPE, code="unknown-key")
        return
    if session.file is not None:
        for key in session.at.pairs:
            if key != "file":
                message = "stands beside file: the session's own file says it"
                reader.error(session.at.key(key), f"{path}.{key}", message, code="conflict")
        return
    missing = [key for key in ("id", "input") if not session.at.has(key)]
    if missing and not nested:
        reader.error(session.at, path, "needs a file, or an id and an input", code="missing-key")
        return
    for key in missing:
        reader.error(session.at, f"{path}.{key}".lstrip("."), "missing", hint=_SHAPE, code="missing-key")
    if session.scenario is not None and session.scenario.profile is not None:
        where, message = session.scenario.at.key("profile"), "a session lists its faults one by one"
        reader.error(where, f"{path}.scenario.profile".lstrip("."), message, code="unknown-key")


def _same_ids(reader: Reader, read: list[tuple[ReplaySession, str]]) -> None:
    seen: dict[str, ReplaySession] = {}
    for session, path in read:
        first = seen.setdefault(session.id, session) if session.id else session
        if first is not session:
            message = f"the id {session.id!r} is used twice: first on line {first.at.line}"
            reader.error(session.at.get("id"), f"{path}.id".lstrip("."), message, code="duplicate-id")


def _file_problem(reader: Reader, session: ReplaySession, path: str, folder: Path) -> None:
    """A session file that cannot be used, in one line; one that is not there is told elsewhere."""
    assert session.file is not None
    if not (folder / session.file).is_file():
        return
    try:
        read_sessions(folder / session.file, session.file)
    except SpecError as wrong:
        told = [one for one in wrong.problems if one.severity == "error"]
        more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
        message = f"{_placed(session.file, told[0])}{more}"
        reader.error(session.at.get("file"), f"{path}.file", message, hint=told[0].hint, code="bad-session")


def _placed(file: str, problem: Problem) -> str:
    where = f"{file}:{problem.line}:{problem.column}" if problem.line else file
    return f"{where}: {problem.path} {problem.message}" if problem.path else f"{where}: {problem.message}"


def _session(entry: ReplaySession, file: str) -> RecordedSession:
    asked: tuple[DialogueMessage, ...] = entry.input
    first = next((len(asked) - n for n, one in enumerate(reversed(asked)) if one.role != "user"), 0)
    before: tuple[DialogueMessage, ...] = (*entry.context, *asked[:first])
    return RecordedSession(
        id=entry.id or "",
        turns=tuple(one.content for one in asked[first:]),
        name=entry.name,
        source=entry.source,
        captured_at=entry.captured_at or "",
        context=before,
        responses=tuple(
            RecordedResponse(
                one.tool,
                encode(one.response).decode(),
                500 if one.raises and 0 < one.status < 400 else one.status,
                one.latency_ms,
                one.raises or "",
                "" if one.arguments is None else encode(one.arguments).decode(),
                one.python,
            )
            for one in entry.tool_responses
        ),
        expected_failure=entry.expected_failure or "",
        contract=entry.contract or "",
        scenario=None if entry.scenario is None else _scenario(entry.scenario),
        seed=entry.seed,
        fired=None if entry.fired is None else tuple(RecordedFiring(one.fault, one.call) for one in entry.fired),
        file=file,
        line=entry.at.line,
    )


def _scenario(entry: MatrixEntry) -> Scenario:
    return Scenario(entry.name, tuple(replace(one.injection, position=None) for one in entry.own))


def _source(entry: ReplaySource) -> SessionSource:
    asked = entry.filter
    if entry.type == "langsmith_run":
        return SessionSource(run=entry.run_id or "", auto_import=entry.auto_import)
    if asked is None:
        return SessionSource(project=entry.project or "", auto_import=entry.auto_import)
    return SessionSource(
        project=entry.project or "",
        status=asked.status,
        date_range=asked.date_range,
        min_latency_ms=asked.min_latency_ms or 0.0,
        auto_import=entry.auto_import,
    )


def _contract(reader: Reader, root: Node) -> ContractSection | None:
    if root.kind != "map" or not root.has("contract"):
        hint = "a session's contract is the `contract:` section of a file"
        reader.error(root, "contract", "there is no contract in it", hint=hint, code="missing-key")
        return None
    node = root.get("contract")
    rules = Node(node.kind, node.line, node.column, node.length, node.value, node.text, items=node.items)
    rules.pairs = {key: pair for key, pair in node.pairs.items() if key != "chaos_matrix"}
    section = reader.section(ContractSection, rules, "contract")
    if isinstance(section, Bad):
        return None
    if not section.invariants and not reader.failed("contract.invariants"):
        reader.error(rules, "contract.invariants", "missing", hint="its rules", code="missing-key")
    duplicates(reader, section.invariants)
    made: ContractSection = section
    return made
