"""What a model call costs: an estimate from the spec's own prices, else from a dated list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from holdfast.model.completion import Usage
from holdfast.model.model_spec import ModelSpec
from holdfast.planes.llm.sources.model_name import entry_for

_TAG = re.compile(r"(-\d[\w.-]*|-latest|-preview[\w.-]*|[:@].*)?")
"""What may follow a listed name: a date, a version. `gpt-4o-audio` is another model than `gpt-4o`."""


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
