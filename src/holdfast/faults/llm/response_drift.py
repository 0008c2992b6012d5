"""response_drift: the model answers like another version of itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, ClassVar, Literal, assert_never

from msgspec import Meta

from holdfast.faults import drift
from holdfast.faults.llm_text import read_text, replace_text
from holdfast.faults.values import is_rows, list_fields, replace_field, replace_items
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply

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
        Meta(description="What changes."),
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
                    yield name, f"is for verbosity_shift; {self.drift_type} does not read it"

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
                return drift.rename_fields(text, self.severity, rng)
            case "format_change":
                return drift.change_format(text, self.severity)
            case "verbosity_shift":
                factor = self.factor or _FACTORS[self.severity]
                return drift.shift_verbosity(text, self.direction or "expand", factor, rng)
            case "refusal_rephrase":
                return drift.rephrase_refusal(text, self.severity, rng)
            case "tone_shift":
                return drift.shift_tone(text, self.severity, rng)
            case "model_fallback":
                return drift.shift_verbosity(text, "compress", _FACTORS[self.severity], rng)
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
    return replace_field(value, "model", drift.name_smaller_model(model)) if isinstance(model, str) and model else value
