"""The protocol between Holdfast and a host: length-prefixed JSON messages."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from threading import Lock
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from holdfast.errors import AgentUnavailable
from holdfast.model.codec import HALVES, encode, make_storable
from holdfast.model.observation import FaultMet, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.task import RecordedUse
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial

IMPORT_S = 120.0
"""Maximum time for the agent's import: it may load models, but a run must not wait forever."""
LENGTH_BYTES = 8
"""Bytes of the length before each message."""
LOWEST_OWN_FD = 1000
"""The lowest number for Holdfast's descriptors in the agent's process, to survive code that closes all low ones."""
CONNECTION_LOST = 83
"""Exit code of a process that closed Holdfast's line: nothing it does could be reported any more."""


class TrialRequest(Struct, frozen=True, array_like=True):
    """The trial that a host must run. Turns after the first are sent when they are due."""

    trial: Trial
    prompt: str
    turns: int = 1
    """Maximum number of turns."""
    began: float = 0.0
    """perf_counter at the start of the trial; the trace counts from there."""
    earlier: tuple[Turn, ...] = ()
    """Turns that the agent answered before it was killed and started again."""
    restarted: bool = False
    """Whether it was: then it keeps what it left and is not reset."""


class Fault(Struct, frozen=True, tag="fault", array_like=True):
    """A ledger entry, sent before the fault acts; sent again with its outcome."""

    met: FaultMet
    amends: bool = False


class RecordingUsed(Struct, frozen=True, tag="recorded", array_like=True):
    """The recorded reply for a call of a replayed trial, sent before the call receives it."""

    use: RecordedUse


class FunctionCall(Struct, frozen=True, array_like=True):
    """A call of one of the agent's functions, as far as known; sent again when it has ended."""

    pid: int
    number: int
    """The number of the call in that process."""
    event: TraceEvent


class FunctionCalls(Struct, frozen=True, tag="calls", array_like=True):
    """Calls that began or ended, in this order."""

    calls: tuple[FunctionCall, ...]


class TurnBegun(Struct, frozen=True, tag="asked", array_like=True):
    """The reset is done, or a turn ended normally: the agent's time begins."""


class Piece(Struct, frozen=True, tag="piece", array_like=True):
    """A part of a streamed answer: it counts if no more arrives."""

    text: str


class TurnEnded(Struct, frozen=True, tag="said", array_like=True):
    """A turn that ended."""

    turn: Turn
    notes: tuple[str, ...] = ()


class Note(Struct, frozen=True, tag="noted", array_like=True):
    """A note for the reader of the trial's report."""

    text: str


class HarnessFailure(Struct, frozen=True, tag="broke", array_like=True):
    """A harness error, or a failed reset, inside the agent's process."""

    message: str
    code: str = "bug"


class TurnsDone(Struct, frozen=True, tag="done", array_like=True):
    """All turns ended."""

    calls: dict[str, int]
    concurrent: bool
    unmatched: dict[int, str]


Message = Fault | RecordingUsed | FunctionCalls | TurnBegun | Piece | TurnEnded | Note | HarnessFailure | TurnsDone


class ReportLine(Protocol):
    """The connection to the parent process."""

    def send(self, message: Message) -> None: ...

    def receive_turn(self) -> str | None:
        """Return the next turn; None if there is no other."""
        ...

    def wait_until_settled(self) -> None:
        """Wait until the parent process has handled the write that was just reported."""
        ...


class HostSetup(Struct, frozen=True):
    """The first message to the host."""

    agent: AgentSpec
    root: str
    scenarios: tuple[Scenario, ...]
    mode: Literal["fork", "place"]


class Ready(Struct, frozen=True, tag="ready"):
    """Reports that the agent is imported and its tools are wrapped."""

    tools: tuple[str, ...]
    llm: tuple[str, ...]
    threads: int
    """Number of threads after the import: more than one makes forking unsafe."""
    import_ms: float


class Unusable(Struct, frozen=True, tag="unusable"):
    """Reports why the agent cannot be imported or wrapped."""

    message: str
    hint: str = ""
    trace: str = ""
    key: str = ""
    """The key of the spec that causes it, if any."""
    code: str = "agent-import-failed"

    def to_error(self) -> AgentUnavailable:
        return AgentUnavailable(
            self.message, code=self.code, hint=self.hint, body=self.trace, config=True, key=self.key
        )


class ChildStarted(Struct, frozen=True, tag="started", array_like=True):
    ticket: int
    pid: int


class ChildExited(Struct, frozen=True, tag="exited", array_like=True):
    pid: int
    status: int
    """A waitpid status."""
    survivors: int = 0
    """Processes below it that could not be killed."""


class ForkRefused(Struct, frozen=True, tag="refused", array_like=True):
    """Reports that no process could be created for the trial."""

    ticket: int
    why: str


Notice = ChildStarted | ChildExited | ForkRefused


class TrialSocket:
    """The agent's end of a trial's line."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._inode = os.fstat(fd).st_ino
        self._owner = os.getpid()
        self._lock = Lock()

    def send(self, message: Message) -> None:
        """Send a message. If that fails, end the process: nothing may happen that cannot be reported."""
        # Calls and faults of a process that the agent forked are its own. But a turn can only be ended by the process
        # that began it: the child that returns here runs a copy of Holdfast's code by accident.
        if os.getpid() != self._owner and not isinstance(
            message, Fault | FunctionCalls | RecordingUsed | HarnessFailure
        ):
            os._exit(0)  # the agent forked, and the child returned as if it were the agent
        try:
            data = add_length(encode(message))
        except UnicodeEncodeError:
            data = add_length(encode(Note(HALVES))) + add_length(encode(make_storable(message)))
        try:
            with self._lock:
                if os.fstat(self._fd).st_ino != self._inode:  # the agent closed it and opened something else
                    os._exit(CONNECTION_LOST)
                write_all(self._fd, data)
        except OSError:
            os._exit(CONNECTION_LOST)

    def receive_turn(self) -> str | None:
        """Return the next turn; None if there is no other."""
        return msgspec.json.decode(read_frame(self._fd), type=str | None)

    def wait_until_settled(self) -> None:
        """Wait until the parent process has handled the write that was just reported."""
        read_frame(self._fd)


class MessageFrames:
    """Splits a stream into its length-prefixed messages."""

    def __init__(self, on_message: Callable[[bytes], None]) -> None:
        self._buffer = bytearray()
        self._on_message = on_message

    def feed(self, data: bytes) -> None:
        """Add bytes and pass on every complete message."""
        # Complete messages are cut off the front in one step at the end: deleting each one would move the rest of the
        # buffer every time.
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= LENGTH_BYTES:
            end = at + LENGTH_BYTES + int.from_bytes(buffer[at : at + LENGTH_BYTES], "big")
            if len(buffer) < end:
                break
            self._on_message(bytes(buffer[at + LENGTH_BYTES : end]))
            at = end
        del buffer[:at]

    def __len__(self) -> int:
        return len(self._buffer)


def add_length(data: bytes) -> bytes:
    """Return a message with its length in front."""
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def send_message(fd: int, message: Any) -> None:
    """Send one message on a blocking descriptor."""
    write_all(fd, add_length(encode(make_storable(message))))


def write_all(fd: int, data: bytes) -> None:
    """Write all of it to a blocking descriptor."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def read_frame(fd: int) -> bytes:
    """Read one message from a blocking descriptor; raise EOFError if the other side is gone."""
    return _read_exactly(fd, int.from_bytes(_read_exactly(fd, LENGTH_BYTES), "big"))


def _read_exactly(fd: int, size: int) -> bytes:
    parts = os.read(fd, size)
    while len(parts) < size:
        piece = os.read(fd, min(size - len(parts), 1 << 20))
        if not piece:
            raise EOFError("the other process closed the connection")
        parts += piece
    return parts


def move_high(fd: int) -> int:
    """Move the descriptor to a high number; programs that the agent starts do not inherit it."""
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, LOWEST_OWN_FD)
    except OSError:  # a low limit on open files
        return fd
    os.close(fd)
    return high
