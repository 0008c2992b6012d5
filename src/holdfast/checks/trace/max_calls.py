"""`max_calls`: the agent did not call too often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from holdfast.checks.trace.calls import ANY_URL, LISTED, Glob, matches, named, own, perhaps, split, urls_of
from holdfast.checks.wording import shorten
from holdfast.model.exhibit import Exhibit
from holdfast.model.trace import TraceEvent
from holdfast.model.verdict import Finding


@dataclass(frozen=True)
class MaxCalls:
    """The agent made no more than so many calls; a client library's retries do not count."""

    max: Annotated[int, Meta(description="The most calls that are fine.", ge=0, examples=[10])]
    tool: Annotated[Glob | None, Meta(description="Only calls of this tool: a name, a glob or a URL.")] = None
    plane: Annotated[
        Literal["tool", "llm", "mcp", "http"] | None,
        Meta(description="Only calls of tools, models, MCP tools, URLs."),
    ] = None

    polarity: ClassVar[Literal["positive", "negative"]] = "negative"
    reads: ClassVar[Literal["trace"]] = "trace"
    codes: ClassVar[Mapping[str, str]] = {
        "calls-above": "There were more calls than allowed.",
        "calls-within": "There were as many calls as allowed.",
    }
    texts_read: ClassVar[tuple[str, ...]] = ("target",)

    @property
    def judges_deeds(self) -> bool:
        """Asking a model is not a deed."""
        return self.plane != "llm"

    def tools_named(self) -> Iterable[tuple[str, str]]:
        return [("tool", self.tool)] if self.tool is not None else []

    def urls_read(self) -> tuple[str, ...]:
        """URL globs of the requests that it reads."""
        return urls_of(self.tool) if self.tool is not None else ANY_URL if self.plane in (None, "http") else ()

    def decide(self, exhibit: Exhibit) -> Finding:
        found, asked = split(e for e in own(exhibit.observation.trace) if self._counts(e))
        what = {"tool": "tool ", "llm": "model ", "mcp": "MCP ", "http": "HTTP ", None: ""}[self.plane]
        of = f" of {shorten(self.tool)}" if self.tool else ""
        said = f"{len(found)} {what}call{'' if len(found) == 1 else 's'}{of}"
        if len(found) + len(asked) <= self.max:
            return Finding(True, said, "calls-within")
        if len(found) <= self.max:
            return Finding(None, f"{said}; {perhaps(asked)}", "calls-unseen")
        by_target = Counter(named(e) for e in found)
        details = {"calls": dict(by_target.most_common(LISTED))}
        return Finding(False, f"{said}, more than {self.max}", "calls-above", details=details)

    def _counts(self, event: TraceEvent) -> bool:
        if self.tool is not None and not matches(event, self.tool):
            return False
        return self.plane is None or event.event_type == f"{self.plane}_call"
