"""What becomes of one model call: what it used and cost, and its entry in the trace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from holdfast.model.codec import digest
from holdfast.model.completion import Completion, Usage
from holdfast.model.model_spec import ModelSpec
from holdfast.model.shorten import shorten
from holdfast.model.trace import TEXT_KEPT, Cost, TraceEvent
from holdfast.planes.llm.codecs.loose import obj, parse
from holdfast.planes.llm.reply_sender import SentReply
from holdfast.planes.llm.sources.provider_hosts import entry_for
from holdfast.planes.llm.sources.source import Query
from holdfast.protocols.fault import Call
from holdfast.protocols.trial import TrialContext

_TAG = re.compile(r"(-\d[\w.-]*|-latest|-preview[\w.-]*|[:@].*)?")
"""What may follow a listed name: a date, a version. `gpt-4o-audio` is another model than `gpt-4o`."""


class Account:
    """What the agent got, as far as it is known, and how long upstream was silent."""

    def __init__(
        self, context: TrialContext, query: Query, models: Mapping[str, ModelSpec], call: Call, retry: int
    ) -> None:
        self._context = context
        self._query = query
        self._models = models
        self._call = call
        self.retry = retry
        self.completion: Completion | None = None
        """What the agent got, as far as it could be read."""
        self.status: int | None = None
        self.trouble = ""
        self.usage: Usage | None = None
        """Of a reply that passed unread."""
        self.since: float | None = None
        """When the wait for upstream's next bytes began; None while none are waited for."""
        self.billed = True
        self.script = ""
        self._ts = context.now()
        self._told = False

    @property
    def age_ms(self) -> float:
        """How long ago the call came."""
        return (self._context.now() - self._ts) * 1000

    def waits(self) -> None:
        """Upstream is to say something."""
        self.since = self._context.now()

    def note(self, sent: SentReply) -> None:
        """What was sent to the agent."""
        self.status, self.trouble = sent.status, sent.trouble

    def tell(self, event: TraceEvent) -> None:
        """Enters the call, once: an answer that comes after its trial changes nothing."""
        if not self._told:
            self._told = True
            self._context.saw(event)

    def event(self, what: str = "") -> TraceEvent:
        """The call as the trace has it; `what` was asked where it is no model."""
        context, call, completion = self._context, self._call, self.completion
        usage = completion.usage if completion is not None else self.usage
        since = self.since if self.trouble == "client_gone" else None
        return TraceEvent(
            ts=self._ts,
            event_type="llm_call",
            tool=what or call.target,
            plane=call.plane,
            n=call.n,
            retry=self.retry,
            duration_ms=self.age_ms,
            status=self.status,
            error_type=self.trouble,
            input=shorten(_last(self._query), TEXT_KEPT),
            output=shorten(completion.shown if completion is not None else "", TEXT_KEPT),
            digest=self._query.digest or digest(self._query.body),
            cost=self._cost(usage, self._query.model),
            script=self.script,
            fault=context.met_by(call.plane, call.target, call.n),
            offers_tools=_offers_tools(self._query),
            waited_ms=0.0 if since is None else (context.now() - since) * 1000,
        )

    def _cost(self, usage: Usage | None, model: str) -> Cost | None:
        if usage is None:
            return None
        usd = estimate(model, usage, self._models)
        return Cost(model, usage.input_tokens, usage.output_tokens, usd, self.billed, usage.cached_input)


def _offers_tools(query: Query) -> bool:
    """Whether the model is offered tools; true of a request that cannot be read."""
    return query.codec is not None and (query.asked is None or bool(query.asked.tools))


def _last(query: Query) -> str:
    """The newest thing said to the model."""
    asked = query.asked
    if asked is None or not asked.messages:
        return ""
    last = asked.messages[-1]
    return "\n".join([result.text for result in last.results]) or last.text if last.results else last.text


_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")


def usage_in(body: bytes) -> Usage | None:
    """The usage that an OpenAI-like, Anthropic or Ollama reply states; None if it states none."""
    reply = obj(parse(body))
    if not reply:
        return None
    told: Any = reply.get("usage")
    if isinstance(told, dict):
        given, made = _first(told, _INPUT), _first(told, _OUTPUT)
    else:
        given, made = _number(reply.get("prompt_eval_count")), _number(reply.get("eval_count"))
    return None if given is None and made is None else Usage(given or 0, made or 0)


def _first(told: dict[str, Any], names: tuple[str, ...]) -> int | None:
    return next((n for name in names if (n := _number(told.get(name))) is not None), None)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


class Price(NamedTuple):
    """For a million tokens, in US dollars."""

    input: float
    output: float
    cached: float
    """Of input that is read from the provider's cache."""
    written: float
    """Of input that is written to it."""


def estimate(model: str, usage: Usage, own: Mapping[str, ModelSpec]) -> float | None:
    """US dollars for a call of a model; None where its price is not known. `own` are the spec's `models:`."""
    price = _price(model, own)
    if price is None:
        return None
    cached = min(usage.cached_input, usage.input_tokens)
    written = min(usage.cache_written, usage.input_tokens - cached)
    plain = usage.input_tokens - cached - written
    given = plain * price.input + cached * price.cached + written * price.written
    return (given + usage.output_tokens * price.output) / 1_000_000


def _price(model: str, own: Mapping[str, ModelSpec]) -> Price | None:
    """An entry of the spec's that gives one of the two means the other as free; it has one price for all input."""
    key = entry_for(own, model)
    entry = own[key] if key is not None else ModelSpec()
    if entry.input_usd is not None or entry.output_usd is not None:
        given = entry.input_usd or 0.0
        return Price(given, entry.output_usd or 0.0, given, given)
    return listed(entry.name or model)


@lru_cache(256)
def listed(model: str) -> Price | None:
    """The price in our list: of the longest name that this one begins with."""
    name = model.rpartition("/")[2]
    fitting = [known for known in _list() if name.startswith(known) and _TAG.fullmatch(name[len(known) :])]
    return _list()[max(fitting, key=len)] if fitting else None


@cache
def _list() -> dict[str, Price]:
    from importlib.resources import files

    import yaml

    written = yaml.safe_load((files("holdfast.planes.llm") / "prices.yaml").read_text("utf-8"))
    return {name: _read(*map(float, prices)) for name, prices in written["models"].items()}


def _read(given: float, made: float, cached: float | None = None, written: float | None = None) -> Price:
    """A line of the list. Where it has no price for cached input, that costs as much as any."""
    return Price(given, made, given if cached is None else cached, given if written is None else written)
