"""response_drift: the model answers like another version of itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, ClassVar, Literal, assert_never

from msgspec import Meta

from holdfast.faults.llm_text import read_text, replace_text
from holdfast.faults.texts import dump_json, dump_like, parse_json, read_pairs, read_texts, rename_field
from holdfast.faults.values import is_rows, list_fields, replace_field, replace_items
from holdfast.model.shorten import count_tokens, take_tokens
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply

# -- structure ---------------------------------------------------------------------------------
_FENCED = re.compile(r"(?s)(.*?```(?:json)?[ \t]*\n)(.*?)(\n```.*)")


def rename_fields(text: str, severity: str, rng: Random) -> str:
    """Rename one field of JSON, also in a fenced block (subtle), half of the fields (moderate), or all."""
    before, body, after = _split_fence(text)
    data = parse_json(body)
    known = _list_field_names(data)
    if not known:
        return text
    share = {"subtle": 1, "moderate": (len(known) + 1) // 2}.get(severity, len(known))
    names = {name: rename_field(name, known) for name in rng.sample(known, share)}
    return before + dump_like(_rename_keys(data, names), body) + after


def _split_fence(text: str) -> tuple[str, str, str]:
    fenced = _FENCED.fullmatch(text)
    return (fenced[1], fenced[2], fenced[3]) if fenced else ("", text, "")


def _list_field_names(data: Any) -> list[str]:
    if isinstance(data, list):
        return list(dict.fromkeys(name for item in data for name in _list_field_names(item)))
    if not isinstance(data, dict):
        return []
    return list(dict.fromkeys([*data, *(name for part in data.values() for name in _list_field_names(part))]))


def _rename_keys(data: Any, names: Mapping[str, str]) -> Any:
    if isinstance(data, list):
        return [_rename_keys(item, names) for item in data]
    if isinstance(data, dict):
        return {names.get(key, key): _rename_keys(part, names) for key, part in data.items()}
    return data


def change_format(text: str, severity: str) -> str:
    """Fence JSON (subtle), also add a remark (moderate), or turn it into prose; fence prose, turn it into JSON, or into
    fenced JSON with a remark."""
    if not text.strip():
        return text
    _, body, _ = _split_fence(text)
    data = parse_json(body)
    if data is not None:
        return _reformat_json(data, body.strip(), severity)
    answer = dump_json({"answer": text})
    return {
        "subtle": f"```\n{text}\n```",
        "moderate": answer,
    }.get(severity, f"Here is the answer as JSON:\n\n```json\n{answer}\n```")


def _reformat_json(data: Any, body: str, severity: str) -> str:
    fenced = f"```json\n{body}\n```"
    return {
        "subtle": fenced,
        "moderate": f"Here is the JSON you asked for:\n\n{fenced}\n\nLet me know if you need anything else.",
    }.get(severity, _format_as_prose(data))


def _format_as_prose(data: Any) -> str:
    """Return the data as sentences."""
    if isinstance(data, list):
        return " ".join(_format_as_prose(item) for item in data) or "There is nothing to list."
    if isinstance(data, dict):
        return (
            " ".join(f"The {key.replace('_', ' ')} is {_format_phrase(part)}." for key, part in data.items())
            or "Nothing."
        )
    return f"{_format_phrase(data)}."


def _format_phrase(part: Any) -> str:
    if isinstance(part, dict):
        return ", ".join(f"{key} {_format_phrase(inner)}" for key, inner in part.items()) or "empty"
    if isinstance(part, list):
        return " and ".join(_format_phrase(item) for item in part) or "empty"
    return part if isinstance(part, str) else dump_json(part)


# -- wording -----------------------------------------------------------------------------------
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def shift_verbosity(text: str, direction: str, factor: float, rng: Random) -> str:
    """Make prose longer or shorter by a factor; 0.5 and 2 mean the same."""
    if not text.strip() or parse_json(text) is not None:
        return text
    times = max(factor, 1 / factor)
    return _lengthen(text, times, rng) if direction == "expand" else _shorten(text, times)


def _lengthen(text: str, times: float, rng: Random) -> str:
    wanted = count_tokens(text) * times
    phrases = list(read_texts("verbosity"))
    rng.shuffle(phrases)
    longer = text
    at = 0
    while times > 1 and count_tokens(longer) < wanted:
        longer = f"{longer} {phrases[at % len(phrases)]}"
        at += 1
    return longer


def _shorten(text: str, times: float) -> str:
    """Return the text cut to as many complete sentences as fit; at least part of the first."""
    limit = max(1, int(count_tokens(text) / times))
    shorter = ""
    for sentence in _SENTENCE_END.split(text):
        longer = f"{shorter} {sentence}".strip()
        if count_tokens(longer) > limit:
            break
        shorter = longer
    return shorter or take_tokens(text, limit)


def rephrase_refusal(text: str, severity: str, rng: Random) -> str:
    """Return a refusal in other words: a contraction (subtle), another phrase (moderate), or another text
    (significant).
    """
    if not any(_compile_phrase(old).search(text) for old, _ in read_pairs("refusals_moderate")):
        return text
    if severity == "significant":
        return rng.choice(read_texts("refusals_significant"))
    return _replace(text, read_pairs(f"refusals_{severity}"))


def shift_tone(text: str, severity: str, rng: Random) -> str:
    """Change the opening of prose (subtle), also its words (moderate), also its closing (significant)."""
    if not text.strip() or parse_json(text) is not None:
        return text
    opening, closing = rng.choice(read_pairs("tone_frames"))
    if severity == "subtle":
        return f"{opening} {text}"
    register = "casual" if opening.endswith("!") else "formal"
    shifted = f"{opening} {_replace(text, read_pairs(f'tone_{register}'))}"
    return shifted if severity == "moderate" else f"{shifted} {closing}"


def _replace(text: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Replace phrases in one pass, so that no replacement undoes another; initial capitals stay."""
    # The longest phrase first, because alternatives of a regex are tried in order: "do not" must win over "do".
    swaps = {_normalize_phrase(old): new for old, new in pairs}
    ordered = sorted(swaps, key=len, reverse=True)
    either = re.compile("|".join(_compile_phrase(old).pattern for old in ordered), re.IGNORECASE)

    def swap(match: re.Match[str]) -> str:
        new = swaps[_normalize_phrase(match[0])]
        return new[0].upper() + new[1:] if match[0][0].isupper() else new

    return either.sub(swap, text)


def _normalize_phrase(phrase: str) -> str:
    return phrase.lower().replace("’", "'")


def _compile_phrase(phrase: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(phrase)}\b".replace("'", "['’]"), re.IGNORECASE)


# -- the model ---------------------------------------------------------------------------------
_SMALLER: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"opus|sonnet"), "haiku"),
    (re.compile(r"-pro\b"), "-flash"),
    (re.compile(r"-flash(?!-lite)"), "-flash-lite"),
    (re.compile(r"-mini\b"), "-nano"),
    (re.compile(r"-(large|medium)\b"), "-small"),
    (re.compile(r"(?<![\d.])(?:\d{2,}|9)b\b"), "8b"),
    (re.compile(r"(?<![\d.])[2-8]b\b"), "1b"),
)
"""Families of models by the word that gives their size; the first match is used."""
_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


def name_smaller_model(model: str) -> str:
    """Return the name of a smaller model of the same family, else the name without its date and with `-mini`."""
    for size, word in _SMALLER:
        if size.search(model):
            return size.sub(word, model, count=1)
    return f"{_DATE.sub('', model)}-mini" if model else model


_FACTORS = {"subtle": 1.5, "moderate": 2.0, "significant": 4.0}


@dataclass(frozen=True)
class ResponseDrift:
    """Changes the answer as another version of the model might: fields, length, format, tone.

    json_field_rename acts on JSON alone, verbosity_shift and tone_shift on prose alone, refusal_rephrase on refusals.
    model_fallback: the reply names a smaller model, and its prose is shorter.
    """

    drift_type: Annotated[
        Literal[
            "json_field_rename", "verbosity_shift", "format_change", "refusal_rephrase", "tone_shift", "model_fallback"
        ],
        Meta(
            description="What changes. `json_field_rename` fits JSON, `verbosity_shift` and `tone_shift` prose, "
            "`format_change` prose or fenced JSON, `refusal_rephrase` refusals. `model_fallback` names a smaller model "
            "and keeps only the first sentences.",
            examples=["verbosity_shift"],
        ),
    ] = "json_field_rename"
    severity: Annotated[Literal["subtle", "moderate", "significant"], Meta(description="How much changes.")] = "subtle"
    direction: Annotated[
        Literal["expand", "compress"] | None, Meta(description="For verbosity_shift: more words (default) or fewer.")
    ] = None
    factor: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="For verbosity_shift: how many times longer or shorter. Default by severity: 1.5, 2, 4."),
    ] = None

    traits: ClassVar[FaultTraits] = FaultTraits(see=("invariants.behavior_unchanged",))

    def problems(self) -> Iterable[tuple[str, str]]:
        """Report settings that this kind of drift does not use."""
        if self.drift_type != "verbosity_shift":
            for name, value in (("direction", self.direction), ("factor", self.factor)):
                if value is not None:
                    yield name, f"applies only to verbosity_shift, not to {self.drift_type}"

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        text = read_text(reply.value)
        drifted = text if text is None else self._drift(text, ctx.rng)
        value = reply.value if drifted is None or drifted == text else replace_text(reply.value, drifted)
        value = _fall_back(value) if self.drift_type == "model_fallback" else value
        return reply if value is reply.value else Reply(value)

    def _drift(self, text: str, rng: Random) -> str:
        match self.drift_type:
            case "json_field_rename":
                return rename_fields(text, self.severity, rng)
            case "format_change":
                return change_format(text, self.severity)
            case "verbosity_shift":
                factor = self.factor or _FACTORS[self.severity]
                return shift_verbosity(text, self.direction or "expand", factor, rng)
            case "refusal_rephrase":
                return rephrase_refusal(text, self.severity, rng)
            case "tone_shift":
                return shift_tone(text, self.severity, rng)
            case "model_fallback":
                return shift_verbosity(text, "compress", _FACTORS[self.severity], rng)
            case other:
                assert_never(other)


def _fall_back(value: Any) -> Any:
    """Return the reply, or each of its chunks, with the name of a smaller model if it names one."""
    if is_rows(value):
        chunks = [_fall_back(chunk) for chunk in value]
        return (
            value if all(new is old for new, old in zip(chunks, value, strict=True)) else replace_items(value, chunks)
        )
    model = dict(list_fields(value)).get("model")
    return replace_field(value, "model", name_smaller_model(model)) if isinstance(model, str) and model else value
