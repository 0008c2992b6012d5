"""A call of the agent's own functions as the trace records it: arguments, result and duration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from itertools import count
from time import perf_counter
from types import ModuleType, TracebackType
from typing import Any, Literal, TypeAlias

from holdfast.errors import InjectedError
from holdfast.model.canary import CanaryReader, find_echoes
from holdfast.model.codec import digest, encode_canonical, make_encodable
from holdfast.model.shorten import shorten
from holdfast.model.trace import EVENTS_KEPT, TEXT_KEPT, TraceEvent
from holdfast.planes.describe import find_cut_canaries, format_exception, render_value
from holdfast.planes.recorded_value import has_python, write_lost, write_reply

Phase: TypeAlias = Literal["done", "unfinished"]
ReportCall: TypeAlias = Callable[[int, TraceEvent], None]
"""Receives the number of a call and what is known about it."""

IDEMPOTENCY_KEY = "idempotency_key"
"""The argument that marks a repeated call for the receiver."""


_BYTES = (bytes, bytearray)
_CONTAINERS = frozenset((dict, list, set, bytearray))
_SCALARS = frozenset((str, int, float, bool, type(None)))
_JSON = frozenset('{["-0123456789 \n\r\t')
"""First characters of a text that could be JSON."""
_JSON_WORDS = ("true", "false", "null")


class CallTrace:
    """The sink to which the calls of one trial are reported, and the clock that times them."""

    __slots__ = ("_numbers", "attack", "began", "early", "report")

    def __init__(self, began: float, report: ReportCall, *, early: bool = False, attack: bool = False) -> None:
        self.began = began
        """perf_counter at the start of the trial; it is the same clock in every process of a machine."""
        self.report = report
        self.early = early
        """Whether a call is also reported when it begins, because its process may die during it."""
        self.attack = attack
        """Whether the trial has an attack, and sent text may therefore contain a canary."""
        self._numbers = count(1)

    def take_number(self) -> int:
        """Return the next call's number; 0 once the limit of recorded calls is reached."""
        n = next(self._numbers)
        return n if n <= EVENTS_KEPT + 1 else 0  # one more than is kept, to show that some are missing


class TracedCall:
    """One call in progress. It costs the agent a few microseconds per call, so nothing here is computed twice."""

    def __init__(
        self, call_trace: CallTrace, number: int, plane: str, name: str, n: int, arguments: dict[str, Any]
    ) -> None:
        arguments_json = format_arguments(arguments)  # now, because the function may change its arguments
        self.modes: dict[int, str] | None = None
        """The modes of the faults that act on the call, by index of the injection."""
        self._is_reported = False
        self._is_waiting = False
        self._call_trace = call_trace
        self._number = number
        self._plane = plane
        self._name = name
        self._n = n
        self._input = arguments_json.decode()
        self._digest = ""
        self._canaries: tuple[str, ...] = ()
        self._unread = False
        if call_trace.attack and not _SCALARS.issuperset(map(type, arguments.values())):
            read = ReadValues(arguments)
            self._canaries, self._unread = read.canaries, read.unread
        self._mutable = {name: value for name, value in arguments.items() if type(value) in _CONTAINERS}
        """Arguments that the function can change in place, with their original form."""
        self._before = format_arguments(self._mutable) if self._mutable else b""
        if len(arguments_json) > TEXT_KEPT:
            self._canaries += find_cut_canaries(self._input)
            self._input, self._digest = format_value(self._input), digest(name.encode() + arguments_json)
        key = arguments.get(IDEMPOTENCY_KEY)
        self._idempotency = "" if key is None else format_value(key)
        self._at = perf_counter()
        if call_trace.early:
            self._report("unfinished", None, "", "")

    def __enter__(self) -> None:
        """Report the end of the body, unless the body did so itself. A generator left early counts as finished."""

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_reported:
            return
        if raised is None or isinstance(raised, GeneratorExit):
            self._report("done", None, "", "", reply=write_lost("streamed"))  # the items themselves are not stored
        else:
            self.record_exception(raised)

    def expect_faults(self) -> dict[int, str]:
        """Return where the faults that act on the call report their modes; they may delay it."""
        self.modes, self._is_waiting = {}, True
        return self.modes

    def mark_sent(self) -> None:
        """Record that the function itself is being called."""
        self._is_waiting = False

    def record_value(self, value: Any) -> None:
        """Record the value that the call returned."""
        output, reply = format_value(value), ""
        is_text = type(value) is str and output == value and value[:1] not in _JSON and value not in _JSON_WORDS
        if self._plane == "tool" and not is_text:
            reply = write_reply(value)
            if not isinstance(value, str) and len(reply) <= TEXT_KEPT and not has_python(reply):
                output, reply = reply, ""  # this text is complete, with keys in their order
        if self._mutable and self._plane == "tool" and format_arguments(self._mutable) != self._before:
            reply = write_lost("argument-changed")  # a replay returns the reply but changes no argument
        self._report("done", None, "", output, reply=reply)

    def record_exception(self, raised: BaseException) -> None:
        """Record the exception that the call raised."""
        status, kind = None, type(raised)
        path, reply = f"{kind.__module__}:{kind.__qualname__}", ""
        if isinstance(raised, InjectedError):
            status, path = raised.status_code, ""
        elif self._plane == "tool":
            reply = write_reply(raised)
        self._report("done", status, kind.__name__, format_value(format_exception(raised)), raised=path, reply=reply)

    def _report(
        self, phase: Phase, status: int | None, error_type: str, output: str, raised: str = "", reply: str = ""
    ) -> None:
        self._is_reported = phase == "done"
        is_tool = self._plane == "tool"
        event = TraceEvent(
            self._at - self._call_trace.began,
            "tool_call" if is_tool else "llm_call",
            self._name,
            self._plane,
            self._n,
            phase=phase,
            duration_ms=(perf_counter() - self._at) * 1000,
            status=status,
            error_type=error_type,
            input=self._input,
            output=output,
            write=is_tool,
            digest=self._digest,
            idempotency=self._idempotency,
            fault="+".join(dict.fromkeys(self.modes.values())) if self.modes else "",
            canaries=self._canaries,
            unread=self._unread,
            unsent=self._is_waiting and phase == "done",
            raised=raised,
            reply=reply,
            in_process=not is_tool,
        )
        self._call_trace.report(self._number, event)


def format_arguments(arguments: dict[str, Any]) -> bytes:
    """Format arguments as JSON that is equal for equal arguments, whatever their order and memory addresses."""
    try:
        text = encode_canonical(arguments)
    except Exception:  # JSON cannot represent these values: use their printed form
        return make_encodable(render_value(arguments)).encode()
    return text if b" at 0x" not in text else render_value(arguments).encode()


def format_value(value: Any) -> str:
    """Return a value as text, shortened to the size that an event keeps."""
    if isinstance(value, str):
        text = str.__str__(value)
    else:
        text = render_value(bytes(value[: TEXT_KEPT + 1]) if isinstance(value, _BYTES) else value)
    if len(text) > TEXT_KEPT:
        text = shorten(text, TEXT_KEPT)
    return text if text.isascii() else make_encodable(text)


_VALUES = 20_000
"""Maximum number of values examined per call."""
_BLANK = frozenset((int, float, bool, type(None)))
_BUFFERS = (bytes, bytearray, memoryview)
_PROGRAM = (type, ModuleType)
_NO_FIELDS = ("__dict__", "__weakref__")
"""Slots that hold no field of the object."""


class ReadValues:
    """Reads the values of one call; `unread` says whether some could not be read."""

    def __init__(self, value: Any) -> None:
        self.unread = False
        self._echoes: dict[str, None] = {}
        examined: dict[int, Any] = {}  # by id, and kept alive, because an id may be reused
        waiting = [value]
        while waiting:
            one = waiting.pop()
            if id(one) in examined or type(one) in _BLANK:
                continue
            examined[id(one)] = one
            if len(examined) > _VALUES:
                self.unread = True
                return
            try:
                waiting += self._read_parts(one)
            except Exception:  # a library's object may reject inspection
                self.unread = True

    @property
    def canaries(self) -> tuple[str, ...]:
        """In lower case, without duplicates."""
        return tuple(self._echoes)

    def _read_parts(self, value: Any) -> list[Any]:
        """Return the values inside a value; the value itself is read here."""
        if isinstance(value, str):
            self._echoes |= dict.fromkeys(find_echoes(value))
            return []
        if isinstance(value, _BUFFERS):
            data = bytes(value)
            reader = CanaryReader(packed=data[:2] == b"\x1f\x8b")
            reader.feed(data)
            self._echoes |= dict.fromkeys(reader.canaries)
            self.unread = self.unread or not reader.is_legible
            return []
        if isinstance(value, Mapping):
            return [*value.keys(), *value.values()]
        if isinstance(value, list | tuple | Set):
            return list(value)
        if isinstance(value, Iterator):
            self.unread = True  # reading it would consume it
            return []
        if isinstance(value, _PROGRAM) or callable(value):
            return []
        return [str(value)[:_VALUES], *list_fields(value).values()]


def list_fields(value: Any) -> dict[str, Any]:
    """Return the fields of an object, without those that a property computes."""
    fields = dict(vars(value)) if hasattr(value, "__dict__") else {}
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        names = [slots] if isinstance(slots, str) else [one for one in slots if one not in _NO_FIELDS]
        fields |= {name: getattr(value, name) for name in names if hasattr(value, name)}
    return fields
