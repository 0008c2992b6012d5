"""Similarity of meaning by word vectors, read from files of an installed package; never from a network."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from holdfast.errors import HarnessError

EXTRA = "pip install 'holdfast[semantic]'"
_NEEDED = ("numpy", "safetensors", "tokenizers", "wordllama")
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_NEAR = 0.55
"""Two words with this cosine mean the same; opposites reach up to 0.5."""
_TOKENS = "tokenizers/l2_supercat_tokenizer_config.json"


def find_missing_packages() -> str | None:
    """Return what must be installed to compare meanings, or None."""
    lacking = [name for name in _NEEDED if find_spec(name) is None]
    if not lacking:
        lacking = [name for name in (_WEIGHTS, _TOKENS) if not (_find_folder() / name).is_file()]
    return f"method semantic needs {', '.join(lacking)}: {EXTRA}" if lacking else None


def _find_folder() -> Path:
    spec = find_spec("wordllama")  # Searches without importing: the package's own loader needs the network.
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places or ()), ""))


@cache
def _load_model() -> tuple[Any, Any]:
    """Return the tokenizer and the table of vectors, one row per token."""
    if lacking := find_missing_packages():
        raise HarnessError(lacking, code="extra-missing")
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(_find_folder() / _TOKENS))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    (table,) = load_file(str(_find_folder() / _WEIGHTS)).values()
    return tokenizer, table


@lru_cache(maxsize=512)
def _compute_direction(text: str) -> Any:
    """Return the mean of the text's vectors, normalised."""
    import numpy

    tokenizer, table = _load_model()
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    if not ids:
        return numpy.zeros(table.shape[1], dtype=numpy.float32)
    mean = table[ids].astype(numpy.float32).mean(axis=0)
    return mean / (float(numpy.linalg.norm(mean)) or 1.0)


def compute_cosine(one: str, other: str) -> float:
    """Return how similar two texts are in meaning, -1 to 1, before any calibration."""
    return float(_compute_direction(one) @ _compute_direction(other))


def is_near(one: str, other: str) -> bool:
    """Whether two words have about the same meaning."""
    return compute_cosine(one, other) >= _NEAR
