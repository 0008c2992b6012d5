"""Finds rules that pass only because the tool they name was never called: a misspelt name would go unnoticed."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from holdfast.model.codes import RunWarning
from holdfast.model.observation import Observation
from holdfast.model.spec import Spec
from holdfast.plan.checks import get_traits
from holdfast.reading.words import find_misspelt, join_names


class CalledTools:
    """Collects the names of the tools that trials called."""

    def __init__(self, spec: Spec) -> None:
        self._names: set[str] = set()
        self._unmatched: dict[tuple[str, str], None] = {}
        """Each rule and tool name that no call has matched yet."""
        self._forbidden: set[tuple[str, str]] = set()
        """Names of forbidden tools: they are suspicious only if a called tool has a similar name."""
        for rule in spec.invariants:
            traits = get_traits(rule)
            # A positive rule needs no warning: without the call it fails.
            if (traits.polarity == "negative") != rule.negate:
                globs = [glob for _, glob in traits.tools if "://" not in glob and "{{" not in glob]
                self._unmatched |= {(rule.id, glob): None for glob in globs}
                if traits.forbids_calls:
                    self._forbidden |= {(rule.id, glob) for glob in globs}

    def add(self, observation: Observation) -> None:
        if not self._unmatched:
            return
        calls = (event for event in observation.trace if event.event_type in ("tool_call", "mcp_call"))
        new = {event.tool for event in calls} - self._names
        self._names |= new
        for key in [key for key in self._unmatched if any(fnmatchcase(name, key[1]) for name in new)]:
            del self._unmatched[key]

    def build_warnings(self) -> Iterator[RunWarning]:
        """Yield one warning for each rule and tool that no trial called."""
        called = f"tools called: {join_names(sorted(self._names))}" if self._names else "no tool was called"
        for rule, tool in self._unmatched:
            if (rule, tool) in self._forbidden and find_misspelt(tool, self._names) is None:
                continue
            text = f"rule {rule} proves nothing about {tool}: no trial called a tool of this name ({called})"
            yield RunWarning("tool-never-called", text)
