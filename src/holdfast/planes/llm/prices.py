"""What a model call costs: an estimate from the spec's own prices, else from a dated list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from holdfast.model.completion import Usage
from holdfast.model.spec import ModelSpec
from holdfast.planes.llm.naming import entry_for

_TAG = re.compile(r"(-\d[\w.-]*|-latest|-preview[\w.-]*|[:@].*)?")
"""What may follow a listed name: a date, a version. `gpt-4o-audio` is another model than `gpt-4o`."""


def estimate(model: str, usage: Usage, own: Mapping[str, ModelSpec]) -> float | None:
    """US dollars for a call of a model; None where its price is not known. `own` are the spec's `models:`."""
    price = _price(model, own)
    if price is None:
        return None
    return (usage.input_tokens * price[0] + usage.output_tokens * price[1]) / 1_000_000


def _price(model: str, own: Mapping[str, ModelSpec]) -> tuple[float, float] | None:
    """For a million tokens, in and out. An entry that gives one of the two means the other as free."""
    key = entry_for(own, model)
    entry = own[key] if key is not None else ModelSpec()
    if entry.input_usd is not None or entry.output_usd is not None:
        return entry.input_usd or 0.0, entry.output_usd or 0.0
    return listed(entry.name or model)


@lru_cache(256)
def listed(model: str) -> tuple[float, float] | None:
    """The price in our list: of the longest name that this one begins with."""
    name = model.rpartition("/")[2]
    fitting = [known for known in _list() if name.startswith(known) and _TAG.fullmatch(name[len(known) :])]
    return _list()[max(fitting, key=len)] if fitting else None


@cache
def _list() -> dict[str, tuple[float, float]]:
    from importlib.resources import files

    import yaml

    written = yaml.safe_load((files("holdfast.planes.llm") / "prices.yaml").read_text("utf-8"))
    return {name: (float(given), float(made)) for name, (given, made) in written["models"].items()}
