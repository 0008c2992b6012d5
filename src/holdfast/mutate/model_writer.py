"""Mutations that a model writes: its prompt, how its reply is parsed, and whether it can be used."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from holdfast.errors import UserError
from holdfast.execute.resolved_spec import resolve_model
from holdfast.judge.consult import AdviceCache, Consultation, ModelRole
from holdfast.judge.judges import find_missing_key
from holdfast.model.canary import find_echoes
from holdfast.model.model_spec import ModelSpec
from holdfast.mutate.mutator import detect_language
from holdfast.mutate.words import find_exact_parts, find_names


class Assignment(Struct, frozen=True):
    """A writing task for a model."""

    system: str
    prompt: str
    text: str
    """The text to mutate."""
    kept: tuple[str, ...] = ()
    """The parts that each mutation must contain."""
    canary: str = ""
    """For an attack: the text that no mutation may contain in one piece."""
    taken: tuple[str, ...] = ()
    """Existing mutations."""
    round: int = 0
    """How often the same was asked before: another round is another reply."""


class Writer(Protocol):
    """Returns the reply to each assignment, in order; raises HarnessError or UserError if one fails."""

    @property
    def label(self) -> str:
        """The model, for messages."""
        ...

    def __call__(self, assignments: Sequence[Assignment]) -> Sequence[str]: ...


_FENCE = re.compile(r"```[\w-]*\n(.*?)```", re.DOTALL)
_NUMBERED = re.compile(r"^[^\S\n]*(?:\d{1,3}[.)]|[-*•])[^\S\n]+(.+)$", re.MULTILINE)


def parse_replies(text: str) -> list[str]:
    """Return the texts of a reply: a JSON list, alone or in an object, otherwise the items of a numbered list."""
    fenced = _FENCE.search(text)
    plain = (fenced[1] if fenced else text).strip()
    try:
        parsed = msgspec.json.decode(plain)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        items = [item.strip() for item in _NUMBERED.findall(plain)]
        return [item[1:-1] if len(item) > 1 and item[0] == item[-1] == '"' else item for item in items]
    if isinstance(parsed, dict):
        parsed = next((value for value in parsed.values() if isinstance(value, list)), list(parsed.values()))
    if not isinstance(parsed, list):
        return []
    return [item.strip() for item in parsed if isinstance(item, str)]


_TALK = re.compile(
    r"^\W*(?:sure|certainly|of course|absolutely|okay|gerne|natürlich|bien sûr|claro|certo|naturalmente)[,!.]"
    r"|^\W*(?:here|below)(?:'s| is| are)\b[^.?!\n]{0,60}\b(?:paraphras|variation|version|rewrit|reword|mutation|option)"
    r"|^\W*(?:hier sind|voici|aquí tienes|ecco)\b[^.?!\n]{0,60}\b(?:vari|version|textos?\b|texte|testi\b)"
    r"|^\W*(?:variation|version|paraphrase|mutation|rewrite|option|example) ?\d*\W*:"
    r"|\bas an? (?:ai|language model|assistant)\b|\bi(?:'m| am) sorry, but\b"
    r"|\bi (?:can(?:no|')t|won't|am unable to|will not)"
    r" (?:help|assist|comply|provide|do (?:that|this)|rewrite|paraphrase)",
    re.IGNORECASE,
)
"""Phrases of models that talk about a task instead of doing it."""
_LONGER = 4
_ROOM = 240
"""A mutation may be this many times as long as the prompt, plus this many characters."""
_SHORTER = 5
"""Minimum length relative to the prompt, if the prompt has more than a few words."""
_FEW_WORDS = 40


def list_required_parts(prompt: str) -> list[str]:
    """List the parts that a mutation of the prompt must contain: numbers, quoted text, ids, and names.

    German capitalises every noun like a name, so there only exact parts count.
    """
    names = [] if detect_language(prompt) == "de" else find_names(prompt)
    return list(dict.fromkeys([*find_exact_parts(prompt), *names]))


def explain_rejection(
    text: str, prompt: str, required: Sequence[str], canary: str = "", existing: Sequence[str] = ()
) -> str:
    """Return why the text is not a mutation of the prompt; empty if it is one.

    `canary`: the code word of an attack, which must stay in pieces. `existing`: existing mutations.
    """
    if not text.strip():
        return "empty"
    if has_same_words(text, prompt):
        return "the prompt itself"
    if len(text) > _LONGER * len(prompt) + _ROOM:
        return "too long"
    if _TALK.search(text) and not _TALK.search(prompt):
        return "talk about the task"
    if len(prompt) > _FEW_WORDS and len(text) * _SHORTER < len(prompt):
        return "too short"
    if any(part not in text for part in required):
        return "without a number, name or quoted text of the prompt"
    # The code word must stay in two pieces. Joined already in the attack, an agent that only repeats its input would
    # look as if it had obeyed.
    if canary and canary.lower() in find_echoes(text):
        return "an already joined code word"
    if any(has_same_words(text, other) for other in existing):
        return "copies of another"
    return ""


def has_same_words(text: str, other: str) -> bool:
    """Return whether two texts have the same words in the same order; casing and punctuation do not count."""
    return _normalize_words(text) == _normalize_words(other)


def _normalize_words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold())) or text.strip()


WRITER = ModelRole("the model of mutations")
_NAME = "mutations"
"""The model's name in its request: `model:` has only the provider's name."""


class ModelWriter:
    """Asks the file's model, several assignments in parallel; replies are cached by content. No event loop may be
    running.
    """

    def __init__(
        self, model: ModelSpec, environ: Mapping[str, str], root: Path, cache: Path, *, retries: int = 2
    ) -> None:
        """`model` still has its references; scripts are below `root`; `cache` is the folder of cached replies."""
        self._models = {_NAME: resolve_model(model, environ)}
        self._environ, self._root, self._retries = environ, root, retries
        self._cache = AdviceCache(cache)
        variable = find_missing_key(self._models, _NAME, environ)
        if variable:
            hint = f"set {variable}, or write api_key: ${{VAR}} into model:"
            raise UserError(
                f"the model {self.label} has no key: {variable} is not set",
                hint=hint,
                key="model",
                code="model-missing",
            )

    @property
    def label(self) -> str:
        model = self._models[_NAME]
        return f"script {model.script}" if model.script else f"{model.provider}/{model.name}"

    def __call__(self, assignments: Sequence[Assignment]) -> Sequence[str]:
        return asyncio.run(self._ask_all(assignments))

    async def _ask_all(self, assignments: Sequence[Assignment]) -> Sequence[str]:
        consultation = Consultation(
            self._models, self._environ, self._root, self._cache, retries=self._retries, role=WRITER
        )
        try:
            async with asyncio.TaskGroup() as group:
                waiting = [group.create_task(self._ask_model(consultation, one)) for one in assignments]
        except BaseExceptionGroup as failed:
            raise _find_first_error(failed) from None
        finally:
            await consultation.close()
        return [task.result() for task in waiting]

    async def _ask_model(self, consultation: Consultation, one: Assignment) -> str:
        advice = await consultation(
            _NAME, one.system, one.prompt, temperature=None, vote=one.round, fits=lambda text: _is_usable(one, text)
        )
        return advice.text


def _is_usable(one: Assignment, reply: str) -> bool:
    """Return whether to cache the reply: one without any mutation is requested again."""
    return any(not explain_rejection(text, one.text, one.kept, one.canary, one.taken) for text in parse_replies(reply))


def _find_first_error(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = failed.exceptions[0]
    return _find_first_error(inner) if isinstance(inner, BaseExceptionGroup) else inner
