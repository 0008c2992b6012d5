"""Finds the answer in the bytes of a reply, or the reason why there is none. Pure."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, NamedTuple

from msgspec import Struct

from holdfast.agents.conversation import FoundAnswer, find_answer, to_text
from holdfast.agents.http.client import BODY_LIMIT, HttpExchange
from holdfast.model.observation import EndingCause
from holdfast.model.shorten import get_beginning
from holdfast.planes.sse import list_data
from holdfast.reading.json_values import MISSING, Find, parse_json

TEXT_LIMIT = 1_000_000


class ReplyReader(Struct, frozen=True):
    """Reads replies as the spec says: `find` is its response_path, None for the common keys."""

    find: Find | None = None
    path: str = ""

    def read(self, exchange: HttpExchange, notes: list[str]) -> FoundAnswer:
        """Return the answer; a note is added to `notes` if it was cut."""
        if exchange.cut:
            notes.append(f"the reply was cut at {BODY_LIMIT // 1_000_000} MB")
        answer = self._read(exchange)._replace(cut=exchange.cut)
        if exchange.cut and answer.ending in ("answered", "unreadable"):
            why = f"the reply is over {BODY_LIMIT // 1_000_000} MB and was cut"
            answer = answer._replace(ending="unreadable", detail=f"{why}: {answer.detail}" if answer.detail else why)
        if answer.text is None or len(answer.text) <= TEXT_LIMIT // 4:
            return answer
        text = _cut(answer.text, notes)
        return answer._replace(text=text, cut=exchange.cut or len(text) < len(answer.text))

    def _read(self, exchange: HttpExchange) -> FoundAnswer:
        text, undecodable = _decode(exchange)
        if exchange.ending != "answered":
            return self._read_broken(exchange, text)
        status = exchange.status or 0
        if status >= 300:
            return FoundAnswer(self._find_text(exchange, text), "http_error", _format_status(exchange))
        if not text:
            return FoundAnswer(None, "no_answer", f"HTTP {status} with an empty body")
        if undecodable:
            return FoundAnswer(text, "unreadable", f"not text, {undecodable}: {get_beginning(text)}", cause="not-text")
        return self._find_answer(exchange, text)

    def _read_broken(self, exchange: HttpExchange, text: str) -> FoundAnswer:
        if exchange.content_type == "text/event-stream":
            text = read_stream(text, self.find).text or ""
        # An exchange without an answer is unreadable only if its body does not match its Content-Encoding.
        cause: EndingCause = "not-text" if exchange.ending == "unreadable" else ""
        return FoundAnswer(text or None, exchange.ending, exchange.detail, cause=cause)

    def _find_text(self, exchange: HttpExchange, text: str) -> str | None:
        """Return the answer if there is one, else the body: the text of a bad reply is judged, too."""
        return self._find_answer(exchange, text).text or text or None

    def _find_answer(self, exchange: HttpExchange, text: str) -> FoundAnswer:
        if exchange.content_type == "text/event-stream":
            return self._read_stream(text)
        value = _parse_json(text, exchange.content_type)
        if value is not MISSING:
            return self._read_json(value, text)
        if self.find is None:
            return FoundAnswer(text)
        return FoundAnswer(
            text, "unreadable", f"the reply is not JSON, so nothing is at {self.path}: {get_beginning(text)}"
        )

    def _read_json(self, value: Any, text: str) -> FoundAnswer:
        selected = (self.find or find_answer)(value)
        answer = None if selected is MISSING or selected is None else to_text(selected, unwrap=self.find is None)
        failure = _find_failure(value)
        if failure:
            return FoundAnswer(text if answer is None else answer, "http_error", failure, returned=(value,))
        if selected is MISSING:
            return FoundAnswer(None, "unreadable", self._describe_missing(text))
        if answer is None:
            return FoundAnswer(None, "no_answer", "the answer is null", returned=(value,))
        return FoundAnswer(answer, returned=(value,))

    def _read_stream(self, text: str) -> FoundAnswer:
        stream = read_stream(text, self.find)
        failure = next(filter(None, map(_find_failure, stream.events)), "")
        if failure:
            return FoundAnswer(stream.text or text, "http_error", failure)
        if stream.text is not None:
            return FoundAnswer(stream.text, returned=tuple(stream.events))
        if stream.events:
            return FoundAnswer(None, "unreadable", self._describe_missing(text))
        return FoundAnswer(None, "no_answer", "an event stream without data")

    def _describe_missing(self, text: str) -> str:
        where = (
            f"nothing at response_path {self.path}"
            if self.path
            else "none of the usual keys is there; set response_path ($ is the complete reply)"
        )
        return f"{where}: {get_beginning(text)}"


def _decode(exchange: HttpExchange) -> tuple[str, str]:
    """Return the body as text, and the error if it does not match its declared encoding."""
    charset = exchange.charset or "utf-8"
    try:
        return exchange.body.decode(charset).removeprefix("\ufeff"), ""
    except LookupError:
        why = f"unknown charset {get_beginning(charset)!r}"
    except UnicodeDecodeError as bad:
        # The cut may have split a character.
        why = "" if exchange.cut and bad.end >= len(exchange.body) else f"not {charset}"
    except ValueError:  # a name with a null byte, or a codec that is not for text
        why = f"not {get_beginning(charset)!r}"
    return exchange.body.decode("utf-8", "replace").removeprefix("\ufeff"), why


def _parse_json(text: str, content_type: str) -> Any:
    """Return the reply as JSON. If its type is not JSON, only an object or a list is accepted."""
    declared = content_type.endswith("json")
    if not declared and not text.lstrip().startswith(("{", "[")):
        return MISSING
    try:
        return parse_json(text)
    except ValueError:
        return MISSING


def _find_failure(value: Any) -> str:
    """Return the error message in a body; empty if there is none."""
    if not isinstance(value, dict):
        return ""
    error = value.get("error")
    if error is not None:
        return f"the body says error: {get_beginning(to_text(error))}"
    return "the body says success: false" if value.get("success") is False else ""


def _format_status(exchange: HttpExchange) -> str:
    status = exchange.status or 0
    phrase = next((s.phrase for s in HTTPStatus if s == status), "")
    to = f", redirect to {get_beginning(exchange.location)} not followed" if exchange.location and status < 400 else ""
    return f"HTTP {status} {phrase}".rstrip() + to


def _cut(text: str, notes: list[str]) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= TEXT_LIMIT:
        return text
    notes.append(f"the answer has {len(raw) / 1_000_000:.1f} MB and was cut at {TEXT_LIMIT // 1_000_000} MB")
    return raw[:TEXT_LIMIT].decode("utf-8", "ignore")


class Stream(NamedTuple):
    """The text of a stream, and its JSON events, which may contain an error."""

    text: str | None
    """The answer; None if the stream had no field for one."""
    events: list[dict[str, Any]]


def read_stream(text: str, find: Find | None = None) -> Stream:
    """Return the answer in an event stream: the matching parts of its JSON events, else its plain data."""
    all_data = [event.decode("utf-8", "surrogatepass") for event in list_data(text.encode("utf-8", "surrogatepass"))]
    data = [event for event in all_data if event.strip() != "[DONE]"]
    events = _parse_events(data)
    if not events:
        return Stream("".join(data) if data else None, [])
    if find is not None:
        return Stream(_join([find(event) for event in events], unwrap=False), events)
    pieces = _join([_find_delta(event) for event in events])
    if pieces is None:
        pieces = _join([find_answer(event) for event in events])
    return Stream("".join(data) if pieces is None else pieces, events)


def _parse_events(data: list[str]) -> list[dict[str, Any]]:
    """Return the events as objects; empty if one of them is not an object. The last one may be cut off."""
    events: list[dict[str, Any]] = []
    for n, event in enumerate(data, 1):
        try:
            value = json.loads(event)
        except (ValueError, RecursionError):
            if n == len(data):
                break
            return []
        if not isinstance(value, dict):
            return []
        events.append(value)
    return events


def _join(parts: list[Any], *, unwrap: bool = True) -> str | None:
    pieces = [to_text(value, unwrap=unwrap) for value in parts if value is not MISSING and value is not None]
    return "".join(pieces) if pieces else None


def _find_delta(event: dict[str, Any]) -> Any:
    """Return the text in a chunk of the common model APIs."""
    choices = event.get("choices")
    if not isinstance(choices, list):
        return _find_content(event.get("delta"))
    choice = choices[0] if choices and isinstance(choices[0], dict) else {}
    texts = (_find_content(choice.get(key)) for key in ("delta", "message", "text"))
    return next((piece for piece in texts if piece is not None), None)


def _find_content(part: Any) -> str | None:
    if isinstance(part, dict):
        part = part.get("content", part.get("text"))
    return part if isinstance(part, str) else None
