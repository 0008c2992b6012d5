"""`max_calls`: the agent did not make too many calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec.structs import replace

from holdfast.checks.trace import calls
from holdfast.checks.wording import shorten
from holdfast.model.observation import Exhibit
from holdfast.model.trace import TraceEvent
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about
from holdfast.reading.words import format_plural


@dataclass(frozen=True)
class MaxCalls:
    """The agent made at most `max` calls. Automatic retries do not count."""

    max: Annotated[int, about("The limit.", ge=0, examples=[10])]
    tool: Annotated[calls.Glob | None, about("Count only this tool: a name, a glob or a URL.")] = None
    plane: Annotated[
        Literal["tool", "llm", "mcp", "http"] | None, about("Count only calls of tools, models, MCP tools or URLs.")
    ] = None

    traits: ClassVar[CheckTraits] = CheckTraits(polarity="negative", reads="trace", texts=("target",))
    codes: ClassVar[Mapping[str, str]] = {
        "calls-above": "There were more calls than allowed.",
        "calls-within": "There were as many calls as allowed.",
    }

    def configured(self) -> CheckTraits:
        # Asking a model is not an action.
        traits = replace(calls.add_call_traits(self.traits, tool=self.tool), deeds=self.plane != "llm")
        every = self.tool is None and self.plane in (None, "http")
        return replace(traits, urls=calls.ANY_URL) if every else traits

    def decide(self, exhibit: Exhibit) -> Finding:
        made, requested = calls.split_requested(
            e for e in calls.find_own_calls(exhibit.observation.trace) if self._is_counted(e)
        )
        what = {"tool": "tool ", "llm": "model ", "mcp": "MCP ", "http": "HTTP ", None: ""}[self.plane]
        of = f" of {shorten(self.tool)}" if self.tool else ""
        sentence = f"{format_plural(len(made), f'{what}call')}{of}"
        if len(made) + len(requested) <= self.max:
            return Finding(True, sentence, "calls-within")
        if len(made) <= self.max:
            return Finding(None, f"{sentence}; {calls.describe_requested(requested)}", "calls-unseen")
        by_target = Counter(calls.get_call_name(e) for e in made)
        details = {"calls": dict(by_target.most_common(calls.LISTED))}
        return Finding(False, f"{sentence}, more than {self.max}", "calls-above", details=details)

    def _is_counted(self, event: TraceEvent) -> bool:
        return calls.is_match(event, self.tool) and self.plane in (None, event.event_type.removesuffix("_call"))
