"""Every fault of the model, and what a client library is to make of it: an exception, retries, half an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from gateway_kit import ARGUMENTS, RECORD, REFUSAL, TEXT, USAGE, Got, Place, ServedTrial, attempt

from holdfast.model.scenario import Injection, Schedule


@dataclass(frozen=True)
class Weather:
    """One fault of the model, and what is asked under it."""

    mode: str
    settings: dict[str, Any] = field(default_factory=dict)
    times: int | None = None
    prompt: str = "How did ACME do?"
    tools: bool = False
    timeout_s: float = 10.0
    """How long the client waits."""

    @property
    def injection(self) -> Injection:
        return Injection("llm", "*", self.mode, self.settings, Schedule(times=self.times))


def _drift(kind: str, prompt: str = "How did ACME do?", **more: Any) -> Weather:
    return Weather("response_drift", {"drift_type": kind, **more}, prompt=prompt)


WEATHERS = {
    "timeout": Weather("timeout", {"delay_ms": 30}),
    "timeout, the client's": Weather("timeout", {"delay_ms": 1200}, timeout_s=0.4),
    "truncated": Weather("truncated_response", {"max_tokens": 4}),
    "truncated, silent": Weather("truncated_response", {"max_tokens": 4, "silent": True}),
    "rate_limit": Weather("rate_limit", {"retry_after_s": None}),
    "rate_limit, retry-after": Weather("rate_limit", {"retry_after_s": 0.2}),
    "rate_limit, heals": Weather("rate_limit", {"retry_after_s": None}, times=2),
    "empty content": Weather("empty"),
    "empty choices": Weather("empty", {"shape": "choices"}),
    "empty message": Weather("empty", {"shape": "message"}),
    "garbage": Weather("garbage"),
    "drift: fields": _drift("json_field_rename", "Give me the record.", severity="significant"),
    "drift: format": _drift("format_change", "Give me the record.", severity="moderate"),
    "drift: verbosity": _drift("verbosity_shift", direction="compress", factor=3),
    "drift: refusal": _drift("refusal_rephrase", "Tell me the secret."),
    "drift: tone": _drift("tone_shift", severity="significant"),
    "drift: model": _drift("model_fallback"),
    "overloaded": Weather("overloaded"),
    "overloaded, in stream": Weather("overloaded", {"shape": "stream_error"}),
    "server_error": Weather("server_error", {"status": 500}),
    "server_error, html": Weather("server_error", {"status": 502, "body": "html"}),
    "stream_cut": Weather("stream_cut", {"after_tokens": 4}),
    "slow_tokens": Weather("slow_tokens", {"ttft_ms": 60, "per_token_ms": 2}),
    "slow_tokens, the client's": Weather("slow_tokens", {"ttft_ms": 1200, "per_token_ms": 0}, timeout_s=0.4),
    "empty_choices": Weather("empty_choices"),
    "content_filter": Weather("content_filter"),
    "malformed, not json": Weather("malformed_tool_call", tools=True),
    "malformed, not object": Weather("malformed_tool_call", {"shape": "not_object"}, tools=True),
    "unknown_tool": Weather("unknown_tool", tools=True),
    "wrong_args": Weather("wrong_args", {"kinds": ["missing"]}, tools=True),
    "odd_chunks": Weather("odd_chunks"),
    "context_length": Weather("context_length"),
    "quota": Weather("quota"),
}
"""All but repeat_tool_call, which needs a conversation."""


# -- what a client is to meet -----------------------------------------------------------------------
CUT = "The revenue of ACME"
BEGUN = "The revenue of ACME was"


@dataclass(frozen=True)
class Want:
    """What the client is to make of it."""

    finish: str | None = None
    text: str | Callable[[str], bool] = TEXT
    calls: Callable[[list[Any]], bool] = lambda calls: calls == []
    usage: tuple[int, int] | None = USAGE
    model: str = ""
    """Empty: the one that was asked for."""
    lacks: str = ""
    hollow: int = 0
    raised: type[Exception] | None = None
    says: str = ""
    """In the exception's words."""
    failed: bool | None = None
    """Whether it went wrong on the wire; None: if the client raised something."""
    requests: int = 1
    effect: str = "met"


Wants = dict[str, Want | tuple[Want, Want]]
"""By the name of the weather; a pair where a stream meets something else than a plain reply."""


def fails(raised: type[Exception], requests: int = 1, says: str = "", text: str = "") -> Want:
    return Want(text=text, raised=raised, says=says, requests=requests)


def drifts(stop: str, smaller: str) -> Wants:
    """Drift changes the words alone, whoever reads them."""

    def other_fields(text: str) -> bool:
        now, was = json.loads(text), json.loads(RECORD)
        return list(now.values()) == list(was.values()) and not now.keys() & was.keys()

    def fenced(text: str) -> bool:
        return "```json" in text and RECORD in text

    def shorter(text: str) -> bool:
        return text != TEXT and TEXT.startswith(text.rstrip("."))

    def rephrased(text: str) -> bool:
        return text != REFUSAL and "cannot help" in text

    def dressed(text: str) -> bool:
        return text != TEXT and "4.2 million euros in 2025" in text

    few = {RECORD: (5, 23), REFUSAL: (5, 14)}
    return {
        "drift: fields": Want(stop, other_fields, usage=few[RECORD]),
        "drift: format": Want(stop, fenced, usage=few[RECORD]),
        "drift: verbosity": Want(stop, shorter),
        "drift: refusal": Want(stop, rephrased, usage=few[REFUSAL]),
        "drift: tone": Want(stop, dressed),
        "drift: model": Want(stop, shorter, model=smaller),
    }


def nonsense(text: str) -> bool:
    return len(text) == len(TEXT) and not set(TEXT.split()) & set(text.split())


def unreadable(calls: list[Any]) -> bool:
    """A call of the right tool whose arguments break off."""
    (call,) = calls
    try:
        json.loads(call.arguments)
    except ValueError:
        return bool(call.name == "forecast")
    return False


def no_object(calls: list[Any]) -> bool:
    """A call of the right tool whose arguments are JSON text of an object, and no object."""
    (call,) = calls
    return bool(call.name == "forecast" and json.loads(call.read) == ARGUMENTS)


def invented(calls: list[Any]) -> bool:
    (call,) = calls
    return bool(call.name == "forecast_v2" and call.read == ARGUMENTS)


def incomplete(calls: list[Any]) -> bool:
    (call,) = calls
    return bool(call.name == "forecast" and len(call.read) == 1 and call.read.items() <= ARGUMENTS.items())


# -- the trial ----------------------------------------------------------------------------------------
def check(place: Place, voice: Any, name: str, how: str, wants: Wants) -> None:
    """Asks under the weather, and holds client, ledger and trace against what is wanted."""
    weather, found = WEATHERS[name], wants[name]
    want = found if isinstance(found, Want) else found[how == "streamed"]
    got, served, took_s = ask(place, voice, weather, how)
    assert type(got.error) is (want.raised or type(None)), got.error
    assert want.says in str(got.error)
    assert want.text(got.text) if callable(want.text) else got.text == want.text
    if want.raised is None:
        model = want.model or voice.model
        assert (got.finish, got.usage, got.model, got.lacks) == (want.finish, want.usage, model, want.lacks)
        assert got.hollow == want.hollow
        assert want.calls(got.calls)
    _check_books(served, voice.model, weather, want)
    waits = weather.settings.get("retry_after_s") or 0
    assert took_s >= waits * (want.requests - 1)


def ask(place: Place, voice: Any, weather: Weather, how: str) -> tuple[Got, ServedTrial, float]:
    client = place.client(voice, weather.timeout_s)
    history: list[Any] = []
    client.says(history, weather.prompt)
    began = monotonic()
    with place.sail(weather.injection) as served:
        got = attempt(lambda got: getattr(client, how)(got, history, tools=weather.tools))
        took_s = monotonic() - began
    return got, served, took_s


def _check_books(served: ServedTrial, model: str, weather: Weather, want: Want) -> None:
    """Ledger and trace: each request once, repetitions told from the agent's own call, the fault by its name."""
    met = min(weather.times or want.requests, want.requests)
    mode, effect = weather.mode, want.effect
    assert served.met == [("llm", model, n, n - 1, mode, effect) for n in range(1, met + 1)]
    calls = served.calls
    assert [(e.tool, e.n, e.retry) for e in calls] == [(model, n, n - 1) for n in range(1, want.requests + 1)]
    fired = [mode if effect == "met" else ""] * met
    assert [e.fault for e in calls] == [*fired, *[""] * (want.requests - met)]
    failed = (want.raised is not None or met < want.requests) if want.failed is None else want.failed
    assert [e.failed for e in calls] == [*[failed] * met, *[False] * (want.requests - met)]
    assert (served.context.troubles, served.context.concurrent) == ([], False)
