"""`tool_called`: the agent called a tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec.structs import replace

from holdfast.checks.trace import calls
from holdfast.checks.trace.call_content import has_arguments
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError
from holdfast.model.observation import Exhibit
from holdfast.model.traits import CheckTraits, TextRead
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about
from holdfast.reading.words import format_plural


@dataclass(frozen=True)
class ToolCalled:
    """The agent called the tool, from `at_least` to `at_most` times. Automatic retries do not count."""

    tool: Annotated[str, about("A name, a glob, or with :// a URL or `METHOD URL`.", min_length=1, examples=["search"])]
    at_least: Annotated[int, about("The lowest number of calls that passes.", ge=1)] = 1
    at_most: Annotated[int | None, about("The highest number of calls that passes; default: any.")] = None
    arguments: Annotated[
        dict[str, Any] | None, about("Count only calls with these arguments or body fields: name to value or glob.")
    ] = None

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive",
        reads="trace",
        see=("invariants.tool_not_called", "invariants.tool_order", "invariants.max_calls"),
    )
    codes: ClassVar[Mapping[str, str]] = {
        "calls-above": "There were more calls than allowed.",
        "calls-below": "There were fewer calls than required.",
        "calls-within": "There were as many calls as allowed.",
    }

    def configured(self) -> CheckTraits:
        texts: tuple[TextRead, ...] = ("target", "arguments") if self.arguments else ("target",)
        return replace(calls.add_call_traits(self.traits, tool=self.tool), texts=texts)

    def decide(self, exhibit: Exhibit) -> Finding:
        own = calls.find_own_calls(exhibit.observation.trace)
        made, requested = calls.split_requested(e for e in own if calls.is_match(e, self.tool))
        matches = [has_arguments(e.input, self.arguments) for e in made]
        requested = [e for e in requested if has_arguments(e.input, self.arguments) is not False]
        count, unknown, most = matches.count(True), matches.count(None), self.at_most
        what = f"{shorten(self.tool)} was called {format_plural(count, 'time')}"
        what += " with these arguments" if self.arguments else ""
        details = calls.list_calls(made)
        if most is not None and count > most:
            return Finding(False, f"{what}, more than {most}", "calls-above", details=details)
        if unknown and (count < self.at_least or most is not None):
            why = f"the arguments of {format_plural(unknown, 'call')} were too long to be stored"
            raise HarnessError(why, code="check-input-lost")
        if requested and (count < self.at_least or (most is not None and count + len(requested) > most)):
            return Finding(None, f"{what}; {calls.describe_requested(requested)}", "calls-unseen", details=details)
        if count >= self.at_least:
            return Finding(True, what, "calls-within", details=details)
        short = "" if self.at_least == 1 else f", not {self.at_least} times"
        return Finding(False, what + short, "calls-below", details=details)

    def problems(self) -> Iterable[tuple[str, str]]:
        if self.at_most is not None and self.at_most < self.at_least:
            yield "at_most", f"is below at_least, which is {self.at_least}"
