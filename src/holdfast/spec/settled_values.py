"""Numbers, durations, booleans and options that variables give: settled when the file is read, kept with the run."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import UserError
from holdfast.spec.references import names, resolve


class SettledValues:
    """What the references in such places gave, by path; where a run has settled them, what they gave then."""

    def __init__(self, environ: Mapping[str, str], kept: Mapping[str, str] | None = None) -> None:
        self._environ = environ
        self._kept = kept
        self.found: dict[str, str] = {}
        self.unset: dict[str, tuple[str, ...]] = {}
        """By path: the variables without which there is no value."""
        self.variables: dict[str, None] = {}

    def __call__(self, path: str, text: str) -> str | None:
        if self._kept is not None and path in self._kept:
            self.found[path] = self._kept[path]
            return self._kept[path]
        referred = names(text).variables
        self.variables |= dict.fromkeys(referred)
        try:
            self.found[path] = resolve(text, self._environ)
        except UserError:
            self.unset[path] = tuple(name for name in referred if name not in self._environ)
            return None
        return self.found[path]
