"""Separates the words of a prompt that carry its meaning from those that a mutation may change."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random

from msgspec import Struct

from holdfast.mutate.mutator import read_common_words, read_quantities

_PROGRAMS = (
    "ansible|apt|apt-get|awk|bash|brew|cd|chgrp|chmod|chown|cmake|conda|cp|crontab|curl|dd|df|dnf|docker|du|ffmpeg|gcc|gh"
    "|git|grep|gzip|helm|iptables|journalctl|jq|killall|kubectl|ln|ls|mkdir|mkfs|mv|mvn|mypy|mysql|nginx|npm|npx|nslookup"
    "|openssl|pip|pip3|pkill|pnpm|podman|poetry|psql|pwd|pytest|rm|rmdir|rsync|rustc|scp|sed|ssh|sudo|systemctl|tar"
    "|terraform|tmux|umount|useradd|uv|uvx|vim|wget|xargs|zip"
)
"""Programs whose names are not ordinary words: their arguments follow up to a function word."""
_WORDY_PROGRAMS = (
    "bun|cargo|cat|cut|date|dig|dir|echo|find|go|head|history|java|kill|less|make|man|mount|node|passwd|php|ping|ps|python3?"
    "|reboot|ruby|screen|sh|shutdown|sort|split|tail|tee|time|top|touch|uniq|who|yarn"
)
"""Programs whose names are ordinary words: only a word next to them shows what is meant."""
_INVOCATIONS = "|".join(
    rf"(?<=\b(?i:{verb})[ ])" for verb in ("call", "enter", "execute", "invoke", "run", "type", "use", "using")
)
_STOP = (
    "about|an?|and|are|as|at|but|by|can|could|did|do|does|for|from|how|i|if|in|into|is|it|me|my|now|of|on|or|please|should|so"
    "|that|the|then|this|to|was|we|what|when|where|which|why|will|with|would|you|your"
)
_ARGUMENTS = rf"""(?:(?<![.?!])[^\S\n]+(?!(?i:{_STOP})\b(?![\\/]))(?:'[^'\n]{{1,200}}'|\\[ ]|[^\s,;?!])+)*"""
_OPTION = r"--?[A-Za-z][\w-]{0,30}(?!\w)"
_FOLDERS = r"(?:[\w.~-]{0,30}/){0,9}"
_PLACE = rf"(?:[~.]{{0,2}}/{_FOLDERS})?"
_EXACT = re.compile(
    rf"""
      ```(?s:.{{1,4000}}?)```
    # a command
    | (?<![\w./-])(?:{_PLACE}(?:{_PROGRAMS})|(?:{_INVOCATIONS})(?:{_WORDY_PROGRAMS}))(?![\w'’-]){_ARGUMENTS}
    | (?<![\w./-])(?:{_WORDY_PROGRAMS})(?=[ ](?:command|program|tool|utility)\b)
    | (?<![\w-])[a-z]\w{{0,30}}[ ]/[A-Za-z?](?!\w){_ARGUMENTS}  # a command of Windows that has an option
    # any other command that has an option, possibly behind a path
    | (?<![\w./-]){_FOLDERS}[A-Za-z][\w.+-]{{0,30}}(?:[ ][^\sA-Za-z-]\S{{0,60}})?[ ]{_OPTION}{_ARGUMENTS}
    | [\w.~/-]{{1,60}}[ ](?:\|\|?|&&|>>?)[ ][\w.~/-]{{1,60}}{_ARGUMENTS}  # a pipe
    | \b(?:SELECT|FROM|WHERE|INTO|JOIN|TABLE|UPDATE|SET|BY)[ ]+[a-z_][\w.]{{0,60}}  # SQL
    | \b(?:(?:alter|create|drop|truncate)[ ]+(?:database|index|schema|table|view)|delete[ ]+from|insert[ ]+into)
      [ ]+[\w.]{{1,60}}
    | "[^"\n]{{1,200}}" | “[^”\n]{{1,200}}” | „[^“”\n]{{1,200}}[“”] | «[^»\n]{{1,200}}» | 「[^」\n]{{1,200}}」
    | `[^`\n]{{1,200}}` | (?<!\w)'[^'\n]{{1,200}}'(?!\w)
    | \{{\{{[^{{}}\n]{{1,100}}\}}\}}                             # a parameter of the matrix
    | [a-z][a-z0-9+.-]{{1,15}}://\S+                     # a URL
    | [\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,6}}  # an address
    | ^[^\S\n]*[\w-]{{1,40}}:(?=\s)                      # the key of a structured prompt
    | [{{<\[][\w ./-]{{1,60}}[}}>\]]                       # a placeholder or a tag
    | (?<![!-~€£¥])[!-~€£¥]*[\d_/\\@#$€£¥%=^~|][!-~€£¥]*  # numbers, amounts, paths, ids
    | (?<![\w.])[\w-]{{1,80}}\([^()\n]{{0,100}}\)            # a call
    | (?<![\w.])[\w-]{{1,80}}(?:\.[\w-]{{1,80}}){{1,8}}        # a file, host or attribute
    | (?<![\w.])\*?\.[A-Za-z][\w-]{{0,80}}(?:\.[\w-]{{1,80}}){{0,8}}  # a hidden file, or all files of a kind
    | \d+
    """,
    re.VERBOSE | re.MULTILINE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_UNITS = re.compile(
    "[µm]g|mcg|kg|[mcd]l|mL|[kcmn]m|oz|lbs?|[mk]ph|[kKMGT]i?B|[kMG]b|[mkMG]W|[kM]?Wh|[mk]V|mAh?|[kMG]?Hz|[hk]Pa|psi|mmol|dB|px"
    "|[rp]pm|[kmg]wh?|[kmg]?hz|[kmgt]b|[kmg]bps|usd|eur|gbp|jpy|chf|inr|cad|aud"
)
"""Units that are not ordinary words."""
_UNIT_WORDS = re.compile(
    "(?:kilo|centi|milli)?(?:met(?:er|re)s?|grams?|lit(?:er|re)s?|watts?)|kilos?|miles?|inch(?:es)?|f(?:oo|ee)t|yards?|pounds?"
    "|ounces?|gallons?|tons?|tonnes?|acres?|degrees?|(?:nano|micro|milli)?seconds?|minutes?|hours?|days?|weeks?|months?|years?"
    "|celsius|fahrenheit|kelvin|cups?|(?:tea|table)spoons?|tb?sp|pints?|quarts?|slices?|percent|dollars?|euros?|cents?|(?:kilo|mega|giga|tera)?(?:bits?|bytes?)|volts?|amps?"
    "|sekunden?|minuten?|stunden?|tage?n?|wochen?|monate?n?|jahre?n?|meter|gramm|heures?|jours?|semaines?|mois|an(?:née)?s"
    "|horas?|minutos?|días?|semanas?|mes(?:es)?|años?|metros?|gramos?|litros?",
    re.IGNORECASE,
)
_UNIT_SIZE = 4
"""Letters of any other word that is taken for a unit if it follows a number."""
_NUMBER_BEFORE = re.compile(r"\d[ \u00a0°/]*$")
_NUMBER_REACH = 32
"""Characters before a word that are searched for its number."""
_FOLLOWED = re.compile(r"[ '’-]+([^\W\d_])")
_NEGATED = re.compile("n['’]t$|^[nN]['’]")
_INSIDE = 2
"""The most consecutive small words inside a name, as in `Lord of the Rings`."""
_PRONOUN = re.compile("I(?:['’].*)?")
_FEW = 3
_TRIMMED = "\"'“”„«»「」`.,;:!?()¿¡。、！？"


class Word(Struct, frozen=True):
    """A word and its position."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def find_exact_parts(text: str) -> list[str]:
    """Return the literal parts of a prompt: numbers, quoted text, addresses, URLs, paths, ids."""
    parts = (match[0].strip().strip(_TRIMMED) for match in _EXACT.finditer(text))
    return list(dict.fromkeys(part for part in parts if part))


def ends_in_literal(text: str) -> bool:
    """Return whether the prompt ends in a command, path, URL or file, to which appended text would belong."""
    # Only a literal that reaches the end of the prompt counts, apart from closing quotes and punctuation.
    size = len(text.rstrip(_TRIMMED + " "))
    last = next((match[0] for match in _EXACT.finditer(text) if match.end() >= size), "")
    return re.search(r"[ /\\.`]", last.strip(_TRIMMED)) is not None


def find_names(text: str) -> list[str]:
    """Find words written like names: with a capital inside a sentence, or with several capitals."""
    words = find_words(text)
    capitalized = [word.text for word in words if _is_name(word, text)]
    # In a headline, or in a text in capitals, a capital does not mark a name.
    titled = len(capitalized) > _FEW and len(capitalized) * 2 > len(words)
    return [] if titled else list(dict.fromkeys(capitalized))


def find_free_words(text: str, least: int = 1) -> list[Word]:
    """Return the words of at least `least` letters that a mutation may change, in alphabets with capitals.

    Literal parts, names, units, and words of quantity, negation or condition are left out.
    """
    words = find_words(text)
    # A wrong number, name, unit or "not" would make it another prompt with another right answer. A capital marks a
    # name, unless a common word starts a sentence with it or the complete text is in capitals.
    shouted = len(words) > _FEW and all(word.text.isupper() for word in words)
    fixed = [(not shouted and _may_be_name(word, text)) or _is_quantity(word, text) for word in words]
    return [
        word
        for n, word in enumerate(words)
        if len(word.text) >= least and is_cased(word.text) and not fixed[n] and not _is_between(fixed, n)
    ]


def find_gaps(text: str) -> list[int]:
    """Return the positions of single spaces between two words that may be changed."""
    return [a.end for a, b in pairwise(find_free_words(text)) if text[a.end : b.start] == " "]


def sample_words(words: Sequence[Word], rng: Random, share: float) -> list[Word]:
    """Return a random fraction of the words, at least one, in text order."""
    count = max(1, round(len(words) * share))
    return sorted(rng.sample(list(words), min(count, len(words))), key=lambda word: word.start)


def change_words(text: str, words: Sequence[Word], change: Callable[[str], str]) -> str:
    """Apply `change` to each of the words, which must be in text order."""
    parts, at = [], 0
    for word in words:
        parts += [text[at : word.start], change(word.text)]
        at = word.end
    return "".join([*parts, text[at:]])


def is_cased(text: str) -> bool:
    """Return whether all letters belong to an alphabet with capitals."""
    return all(sign.lower() != sign.upper() for sign in text if sign.isalpha())


def find_words(text: str) -> list[Word]:
    """Return every word outside the literal parts, names included."""
    blank = _EXACT.sub(lambda part: " " * len(part[0]), text)
    return [Word(match[0], match.start()) for match in _WORD.finditer(blank)]


def _may_be_name(word: Word, text: str) -> bool:
    """Return whether the word may be a name or part of one: it has a capital for another reason than starting a
    sentence.
    """
    if word.text == word.text.lower():
        return False
    followed = _FOLLOWED.match(text, word.end)
    is_name = followed is not None and followed[1].isupper()
    return is_name or _is_name(word, text) or word.text.lower() not in read_common_words()


def _is_quantity(word: Word, text: str) -> bool:
    """Return whether the word is a unit, or expresses quantity, negation or a condition."""
    if _UNITS.fullmatch(word.text) or _UNIT_WORDS.fullmatch(word.text) or _NEGATED.search(word.text):
        return True
    if word.text.lower() in read_quantities():
        return True
    if len(word.text) > _UNIT_SIZE:
        return False
    # Searching from the start of the text for each short word would be slow in a long text.
    return _NUMBER_BEFORE.search(text, max(0, word.start - _NUMBER_REACH), word.start) is not None


def _is_between(fixed: Sequence[bool], n: int) -> bool:
    """Return whether the word lies between two fixed ones, as in `Lord of the Rings` and `all but the last`."""
    return any(fixed[max(0, n - _INSIDE) : n]) and any(fixed[n + 1 : n + 1 + _INSIDE])


def _is_name(word: Word, text: str) -> bool:
    if not is_cased(word.text) or not word.text[0].isupper() or _PRONOUN.fullmatch(word.text):
        return False
    if len(word.text) > 1 and word.text[1:] != word.text[1:].lower():
        return True
    at = word.start
    while at and text[at - 1] in " \t\"'“„«(*_-":
        at -= 1
    return at > 0 and text[at - 1] not in ".!?:\n¿¡…"
