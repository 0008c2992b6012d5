"""Reads the `replays:` section, its session files, and the contracts that sessions refer to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import SpecError
from holdfast.model.codec import encode
from holdfast.model.scenario import Scenario
from holdfast.model.session import RecordedSession, ReplaySpec, SessionSource
from holdfast.model.spec import Invariant
from holdfast.model.task import DialogueMessage, RecordedResponse
from holdfast.reading.fields import convert
from holdfast.reading.file import read_file
from holdfast.reading.node import Node
from holdfast.reading.reader import Bad, Reader
from holdfast.reading.tree import parse
from holdfast.reading.words import find_near_name
from holdfast.spec.explain import report_inner
from holdfast.spec.rules.matrix import MatrixEntry
from holdfast.spec.rules.rules import report_duplicate_rules
from holdfast.spec.sections.file import ContractSection
from holdfast.spec.sections.run import ReplaySession, ReplaySource, ReplaysSection

_MOST_NEIGHBOURS = 1000
"""Names of files that are compared with a misspelt one."""
_SHAPE = "a session has an id and an input; a list of them, or {sessions: [...]}, is several"


class NamedContract(Struct, frozen=True):
    """The name and the rules of a file's contract."""

    name: str
    rules: tuple[Invariant, ...]


def build_replays(section: ReplaysSection) -> ReplaySpec:
    """Return the section as a value; session files are read when they are replayed."""
    sessions = (
        session.file if session.file is not None else _build_session(session, "") for session in section.sessions
    )
    return ReplaySpec(tuple(sessions), tuple(map(_build_source, section.sources)))


def report_replay_problems(reader: Reader, section: ReplaysSection, spec: Path | None, own: str) -> None:
    """Report missing keys, duplicate ids, and unusable session files and contracts.

    Files are relative to the spec, whose name is `own`; None if they were already checked when the copy was made.
    """
    for session in section.sessions:
        _check_keys(reader, session)
    _report_duplicate_ids(reader, section.sessions)
    if spec is not None:
        _check_recorded_sessions(reader, section, spec, own)
    for source in section.sources:
        required = "project" if source.type == "langsmith" else "run_id"
        if not source.at.has(required):
            reader.report_missing(source.at, required)


def read_sessions(path: Path, name: str = "") -> tuple[RecordedSession, ...]:
    """Return the sessions of a YAML or JSON file; raises SpecError with all its problems."""
    label = name or str(path)
    reader, root, source = _open(path, label)
    entries = list(_iter_entries(reader, root)) if root is not None else []
    for entry in entries:
        _check_keys(reader, entry, nested=True)
    _report_duplicate_ids(reader, entries)
    if reader.has_error(""):
        raise SpecError(
            label, sorted(reader.problems, key=lambda problem: (problem.line, problem.column)), source=source
        )
    return tuple(_build_session(entry, label) for entry in entries)


def read_contract(path: Path, name: str = "") -> NamedContract:
    """Return the `contract` section of a file, without its matrix; raises SpecError with all its problems."""
    label = name or str(path)
    reader, root, source = _open(path, label)
    section = _read_contract_section(reader, root) if root is not None else None
    if section is None or reader.has_error(""):
        raise SpecError(label, reader.problems, source=source)
    return NamedContract(section.name or path.stem, tuple(rule.invariant for rule in section.invariants))


# -- parts --------------------------------------------------------------------------------------
def _open(path: Path, label: str) -> tuple[Reader, Node | None, str]:
    """Return a reader with the YAML problems, the tree and the text; raises SpecError if the file cannot be read."""
    file = read_file(path)
    if file.problem is not None:
        raise SpecError(label, [file.problem], source=file.text)
    reader = Reader()
    root, problems = parse(file.text)
    reader.problems += problems
    return reader, root, file.text


def _iter_entries(reader: Reader, root: Node) -> Iterator[ReplaySession]:
    """Yield the readable sessions of the file."""
    node = root
    if root.kind == "map" and root.has("sessions"):
        reader.report_unknown(root, ("sessions",))
        node = root.get("sessions")
    listed = node.kind == "list"
    if not listed and (node is not root or node.kind != "map"):
        reader.report(node, "expected a session or a list of sessions", hint=_SHAPE, code="wrong-type")
        return
    if listed and not node.items:
        reader.report(node, "there is no session in it", hint=_SHAPE, code="empty")
    for item in node.items if listed else [node]:
        session = reader.read_section(ReplaySession, item)
        if not isinstance(session, Bad):
            yield session


def _check_keys(reader: Reader, session: ReplaySession, *, nested: bool = False) -> None:
    if session.file is not None and nested:
        message = "unknown key: this is the session's own file"
        reader.report(session.at.get_key("file"), message, hint=_SHAPE, code="unknown-key")
        return
    if session.file is not None:
        for key in session.at.pairs:
            if key != "file":
                reader.report_conflict(session.at.get_key(key), "belongs in the session's own file")
        return
    missing = [key for key in ("id", "input") if not session.at.has(key)]
    if missing and not nested:
        reader.report(session.at, "needs a file, or an id and an input", code="missing-key")
        return
    for key in missing:
        reader.report_missing(session.at, key, hint=_SHAPE)
    if session.scenario is not None and session.scenario.profile is not None:
        where, message = session.scenario.at.get_key("profile"), "a session lists its faults one by one"
        reader.report(where, message, code="unknown-key")


def _report_duplicate_ids(reader: Reader, sessions: Iterable[ReplaySession]) -> None:
    reader.report_duplicates(((session.id, session.at.get("id")) for session in sessions if session.id), "id")


def _check_recorded_sessions(reader: Reader, section: ReplaysSection, spec: Path, own: str) -> None:
    """Report session files and contracts that cannot be read, and ids that two files use."""
    first: dict[str, ReplaySession] = {}
    for entry in section.sessions:
        for session in _read_entry(reader, entry, spec.parent):
            earlier = first.setdefault(session.id, entry)
            if earlier is not entry and (earlier.file or entry.file):  # two in the spec are a duplicate-id
                message = f"the id {session.id!r} is used twice: first by the session on line {earlier.at.line}"
                reader.report(entry.at, message, hint="give it another id", code="unusable-session")
            node = entry.at.get("contract" if entry.file is None else "file")
            _check_contract_file(reader, node, session, spec, own)


def _read_entry(reader: Reader, entry: ReplaySession, folder: Path) -> tuple[RecordedSession, ...]:
    """Return the sessions of an entry; reports the first problem of its file. A missing file is reported elsewhere."""
    if entry.file is None:
        return (_build_session(entry, ""),)
    if not (folder / entry.file).is_file():
        return ()
    try:
        return read_sessions(folder / entry.file, entry.file)
    except SpecError as wrong:
        report_inner(reader, entry.at.get("file"), entry.file, wrong.problems, code="bad-session", most=1)
        return ()


def _check_contract_file(reader: Reader, node: Node, session: RecordedSession, spec: Path, own: str) -> None:
    """Report a contract that a session names if it does not exist or has an error."""
    folder = (spec.parent / session.file).parent
    file = find_contract_file(session.contract, own, folder, spec)
    if file is None:
        return
    if not os.path.isfile(file):
        message = f"session {session.id}: there is no contract {session.contract[:80]!r}"
        reader.report(node, message, hint=suggest_contract(session.contract, own, folder), code="unusable-session")
        return
    try:
        read_contract(file, session.contract)
    except SpecError as wrong:
        report_inner(reader, node, session.contract, wrong.problems, code="unusable-session", most=1)


def find_contract_file(contract: str, own: str, folder: Path, spec: Path) -> Path | None:
    """Return the file of the contract that a session in this folder names; None for the spec's own contract."""
    if not contract or contract == own:
        return None
    file = folder / contract
    return None if os.path.isfile(file) and file.resolve() == spec.resolve() else file


def suggest_contract(contract: str, own: str, folder: Path) -> str:
    """Return the hint for a contract that does not exist: the closest name, or the possible values."""
    file = folder / contract
    neighbours: list[str] = []
    if os.path.isdir(file.parent):
        names = sorted(
            neighbour.name for neighbour in file.parent.iterdir() if neighbour.suffix in (".yaml", ".yml", ".json")
        )
        neighbours = names[:_MOST_NEIGHBOURS]
    close = find_near_name(contract, [own]) or find_near_name(file.name, neighbours)
    if close:
        return f"did you mean {close if close == own else os.path.join(os.path.dirname(contract), close)}?"
    return f"use the spec's own contract, {own!r}, or the path of a file with a contract, relative to the session file"


def _build_session(entry: ReplaySession, file: str) -> RecordedSession:
    turns: tuple[DialogueMessage, ...] = entry.input
    # A recorded input may be a conversation. Its last run of user messages is what is asked now, turn by turn;
    # everything before the last answer is context that the agent gets unchanged.
    first = next((len(turns) - n for n, message in enumerate(reversed(turns)) if message.role != "user"), 0)
    before: tuple[DialogueMessage, ...] = (*entry.context, *turns[:first])
    return convert(
        RecordedSession,
        entry,
        id=entry.id or "",
        turns=tuple(message.content for message in turns[first:]),
        captured_at=entry.captured_at or "",
        context=before,
        responses=tuple(
            RecordedResponse(
                response.tool,
                encode(response.response).decode(),
                500 if response.raises and 0 < response.status < 400 else response.status,
                response.latency_ms,
                response.raises or "",
                "" if response.arguments is None else encode(response.arguments).decode(),
                response.python,
            )
            for response in entry.tool_responses
        ),
        expected_failure=entry.expected_failure or "",
        contract=entry.contract or "",
        scenario=None if entry.scenario is None else _build_scenario(entry.scenario),
        file=file,
        line=entry.at.line,
    )


def _build_scenario(entry: MatrixEntry) -> Scenario:
    return Scenario(entry.name, tuple(replace(fault.injection, position=None) for fault in entry.own_faults))


def _build_source(entry: ReplaySource) -> SessionSource:
    filter = entry.filter
    if entry.type == "langsmith_run":
        return SessionSource(run=entry.run_id or "", auto_import=entry.auto_import)
    if filter is None:
        return SessionSource(project=entry.project or "", auto_import=entry.auto_import)
    latency = filter.min_latency_ms or 0.0
    return convert(
        SessionSource, filter, project=entry.project or "", min_latency_ms=latency, auto_import=entry.auto_import
    )


def _read_contract_section(reader: Reader, root: Node) -> ContractSection | None:
    if root.kind != "map" or not root.has("contract"):
        hint = "a session's contract is the `contract:` section of a file"
        reader.report_missing(root, "contract", "there is no contract in it", hint=hint)
        return None
    node = root.get("contract")
    # Sessions bring their own scenarios, so the matrix of the contract has no meaning here and is not even read: an
    # error in it must not stop a replay.
    rules = replace(node, pairs={key: pair for key, pair in node.pairs.items() if key != "chaos_matrix"})
    section: ContractSection | Bad = reader.read_section(ContractSection, rules)
    if isinstance(section, Bad):
        return None
    if not section.invariants and not reader.has_error("contract.invariants"):
        reader.report_missing(rules, "invariants", hint="its rules")
    report_duplicate_rules(reader, section.invariants)
    return section
