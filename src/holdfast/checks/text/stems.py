"""Words without what inflection adds."""

from __future__ import annotations

from functools import cache, lru_cache

from holdfast.checks.text.folding import table
from holdfast.checks.text.languages import NO_SPACES, language

_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ied", "ies", "ed", "s", "ly")
_HISSING = ("ses", "xes", "zes", "ches", "shes")
_SPELLING = (("isation", "ization"), ("ise", "ize"), ("isi", "izi"), ("our", "or"), ("grey", "gray"), ("tre", "ter"),
             ("ogue", "og"), ("ence", "ense"), ("yse", "yze"), ("amme", "am"), ("ll", "l"))  # fmt: skip
_ARABIC_STARTS = ("وال", "بال", "كال", "فال", "لل", "ال")


@lru_cache(maxsize=8192)
def stem(word: str, name: str) -> str:
    """The word as all its forms are compared."""
    if name == "en":
        return _english(word)
    if name in NO_SPACES:
        return word
    if name == "ar":
        word = next((word[len(s) :] for s in _ARABIC_STARTS if word.startswith(s) and len(word) - len(s) >= 3), word)
    if name == "de" and word.startswith("ge") and len(word) > 6 and word.endswith(("t", "en")):
        word = word[2:]
    least = 2 if name in ("hi", "ar") else 3
    for ending in language(name).endings:
        if word.endswith(ending) and len(word) - len(ending) >= least:
            return word[: -len(ending)]
    return word


@cache
def _irregular() -> dict[str, str]:
    lines = (line.split() for line in table("words.toml")["en"]["irregular"].split("|"))
    return {form: base for base, *forms in lines for form in forms}


def _english(word: str) -> str:
    word = word.removesuffix("'s").removesuffix("'")
    word = _irregular().get(word, word)
    word = word.removesuffix("able").removesuffix("ible") if len(word) > 7 else word
    for british, american in _SPELLING:
        if len(word) >= 4:
            word = word.replace(british, american)
    word = word[:-1] if word.endswith(_HISSING) else word  # `boxes` as `boxe`, whose last letter goes too
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + ("y" if ending in ("ied", "ies") else "")
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeious":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word
