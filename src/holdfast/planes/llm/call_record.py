"""The record of one model call: what the agent received, what the call cost, and its entry in the trace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from holdfast.model.codec import digest
from holdfast.model.completion import Completion, Usage
from holdfast.model.model_spec import ModelSpec
from holdfast.model.shorten import shorten
from holdfast.model.trace import TEXT_KEPT, Cost, TraceEvent
from holdfast.planes.call_report import CallReport
from holdfast.planes.llm.codecs.loose import as_dict, as_optional_count, parse_json
from holdfast.planes.llm.sources.provider_hosts import find_entry
from holdfast.planes.llm.sources.source import Query
from holdfast.protocols.fault import Call
from holdfast.protocols.trial import TrialContext

_TAG = re.compile(r"(-\d[\w.-]*|-latest|-preview[\w.-]*|[:@].*)?")
"""Suffixes of a listed name that keep its price: a date, a version. `gpt-4o-audio` is a different model from
`gpt-4o`."""
_OLLAMA = ("prompt_eval_count", "eval_count")
_INPUT = ("prompt_tokens", "input_tokens", "prompt_eval_count")
_OUTPUT = ("completion_tokens", "output_tokens", "eval_count")


def read_usage(body: bytes) -> Usage | None:
    """Return the usage that an OpenAI-like, Anthropic or Ollama reply states; None if it states none."""
    reply = as_dict(parse_json(body))
    usage = as_dict(reply.get("usage")) or {name: reply.get(name) for name in _OLLAMA}
    input, output = (
        next((n for name in names if (n := as_optional_count(usage.get(name))) is not None), None)
        for names in (_INPUT, _OUTPUT)
    )
    return None if input is None and output is None else Usage(input or 0, output or 0)


class Price(NamedTuple):
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float
    """Input that is read from the provider's cache."""
    written: float
    """Input that is written to the cache."""


def estimate_cost(model: str, usage: Usage, models: Mapping[str, ModelSpec]) -> float | None:
    """Return the cost of a model call in US dollars; None if the price is unknown. `models` are those of the spec."""
    price = _find_price(model, models)
    if price is None:
        return None
    cached = min(usage.cached_input, usage.input_tokens)
    written = min(usage.cache_written, usage.input_tokens - cached)
    plain = usage.input_tokens - cached - written
    input_cost = plain * price.input + cached * price.cached + written * price.written
    return (input_cost + usage.output_tokens * price.output) / 1_000_000


def _find_price(model: str, models: Mapping[str, ModelSpec]) -> Price | None:
    """Return the price. In an entry of the spec, a missing price is 0, and all input has one price."""
    key = find_entry(models, model)
    entry = models[key] if key is not None else ModelSpec()
    if entry.input_usd is not None or entry.output_usd is not None:
        input_price = entry.input_usd or 0.0
        return Price(input_price, entry.output_usd or 0.0, input_price, input_price)
    return find_listed_price(entry.name or model)


@lru_cache(256)
def find_listed_price(model: str) -> Price | None:
    """Return the price in the built-in list: the longest listed name that is a prefix of this one."""
    name = model.rpartition("/")[2]
    fitting = [known for known in _load_prices() if name.startswith(known) and _TAG.fullmatch(name[len(known) :])]
    return _load_prices()[max(fitting, key=len)] if fitting else None


@cache
def _load_prices() -> dict[str, Price]:
    import yaml

    written = yaml.safe_load((files("holdfast.planes.llm") / "prices.yaml").read_text("utf-8"))
    # Without a price for cached input, cached input costs as much as any other.
    padded = ((name, [*prices, *prices[:1] * 2][:4]) for name, prices in written["models"].items())
    return {name: Price(*map(float, prices)) for name, prices in padded}


class CallRecord(CallReport):
    """The record of one call, and of the reply that the agent received, as far as known."""

    def __init__(
        self, context: TrialContext, query: Query, models: Mapping[str, ModelSpec], call: Call, retry: int
    ) -> None:
        super().__init__(context, call.plane, call.target, call.n)
        self._query = query
        self._models = models
        self._call = call
        self.retry = retry
        self.completion: Completion | None = None
        """The reply that the agent received, as far as it could be read."""
        self.usage: Usage | None = None
        """The usage of a reply that passed unread."""
        self.billed = True
        self.script = ""

    def build_event(self, request_name: str = "") -> TraceEvent:
        """Return what is known of the call; `request_name` names the request if it is not a model call."""
        call, completion, query = self._call, self.completion, self._query
        usage = completion.usage if completion is not None else self.usage
        return TraceEvent(
            self.began,
            "llm_call",
            tool=request_name or call.target,
            plane=call.plane,
            retry=self.retry,
            input=shorten(_read_last_message(query), TEXT_KEPT),
            output=shorten(completion.display_text if completion is not None else "", TEXT_KEPT),
            digest=query.digest or digest(query.body),
            cost=None if usage is None else self._estimate_cost(usage),
            script=self.script,
            offers_tools=query.codec is not None and (query.request is None or bool(query.request.tools)),
        )

    def _estimate_cost(self, usage: Usage) -> Cost:
        model = self._query.model
        usd = estimate_cost(model, usage, self._models)
        return Cost(model, usage.input_tokens, usage.output_tokens, usd, self.billed, usage.cached_input)


def _read_last_message(query: Query) -> str:
    """Return the latest message to the model."""
    request = query.request
    if request is None or not request.messages:
        return ""
    last = request.messages[-1]
    return "\n".join([result.text for result in last.results]) or last.text if last.results else last.text
