"""A spec that is built in Python: a mapping with the keys of the file becomes the text of one."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.api.caller import Caller
from holdfast.api.values import CheckValue, FaultValue
from holdfast.errors import SpecError
from holdfast.model.spec import BuiltText, Problem
from holdfast.reading.reader import join
from holdfast.spec.rules.fault_entry import FAMILIES

_DEEPEST = 100
_CODE = re.compile(r"agent\.(endpoint|tool_registry|reset_function|llm|(tools|llm)\[\d+\](\.callable)?)")
"""Where a function may stand, or an object that can be asked, in place of its name."""
_GIVEN = "holdfast.api.given"


class Builder:
    """Makes plain values of a mapping, and remembers the functions that only this process can find."""

    def __init__(self, where: Caller) -> None:
        self._where = where
        self._problems: list[Problem] = []
        self._inline = False
        self.functions: dict[str, Callable[..., Any]] = {}

    def text(self, written: Mapping[str, Any]) -> BuiltText:
        """The mapping as YAML; SpecError with all that no file could hold."""
        agent = written.get("agent")
        self._inline = isinstance(agent, Mapping) and agent.get("isolation") == "inline"
        plain = self._plain(written, "", 0)
        if self._problems:
            raise SpecError(self._where.path, self._problems)
        return BuiltText(_dumped(plain), self._where.line)

    def _plain(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, FaultValue):
            return self._fault(value, path)
        if isinstance(value, CheckValue):
            return self._plain(value.entry, path, depth)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if depth > _DEEPEST:
            return self._wrong(path, f"nested deeper than {_DEEPEST} levels")
        if _CODE.fullmatch(path) and (callable(value) or isinstance(value, Mapping)) and not _is_entry(value, path):
            return self._code(value, path)
        if isinstance(value, Mapping):
            return {
                self._key(key, path): self._plain(one, join(path, str(key)), depth + 1) for key, one in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._plain(one, f"{path}[{index}]", depth + 1) for index, one in enumerate(value)]
        hint = "write text, a number, true or false, None, a list or a dict"
        return self._wrong(path, f"a {type(value).__name__} cannot stand in a spec", hint=hint)

    def _key(self, key: Any, path: str) -> Any:
        if not isinstance(key, str | int) or isinstance(key, bool):
            self._wrong(path, f"a key is text, found {key!r:.60}")
        return key

    def _fault(self, value: FaultValue, path: str) -> Any:
        """The fault as an entry of its list, which must be the list of its plane."""
        holder = re.sub(r"\[\d+\]$", "", path).rpartition(".")[2]
        family = next(one for one in FAMILIES.values() if one.plane == value.plane)
        if holder != family.name:
            self._wrong(
                path, f"a {value.plane} fault stands in {holder or 'the spec'}", hint=f"put it in {family.name}"
            )
        return self._plain(value.entry, path, 0)

    def _code(self, value: Any, path: str) -> str:
        """`module:attribute` of a function, which a new process can import; else its name in this one."""
        module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
        if module and module != "__main__" and _found(module, name) is value:
            return f"{module}:{name}"
        if not self._inline:
            hint = "define it at the top of a module; or say isolation: inline, to have it asked in this process"
            self._wrong(path, f"{_described(value)} cannot be imported by the new process of a trial", hint=hint)
        return f"{_GIVEN}:{self._name(value)}"

    def _name(self, value: Any) -> str:
        """A name for this spec, the same each time that it is built."""
        own = re.sub(r"\W+", "_", str(getattr(value, "__name__", type(value).__name__))).strip("_") or "given"
        name, number = own, 1
        while self.functions.setdefault(name, value) is not value:
            number += 1
            name = f"{own}_{number}"
        return name

    def _wrong(self, path: str, message: str, *, hint: str = "") -> None:
        self._problems.append(Problem(message, path, self._where.line, 1, hint=hint, code="bad-value"))


def _is_entry(value: Any, path: str) -> bool:
    """`{name: x, callable: f}` is an entry of tools or llm; any other mapping there is a registry of tools."""
    return isinstance(value, Mapping) and not path.endswith("tool_registry")


def _found(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _described(value: Any) -> str:
    name = getattr(value, "__qualname__", "")
    if getattr(value, "__module__", "") == "__main__":
        return f"{name or type(value).__name__}, which a notebook or a script defines,"
    if "<locals>" in name:
        return f"{name.rpartition('.')[2]}, which is defined inside a function,"
    return f"{name or 'an object of ' + type(value).__name__}, which has no name in its module,"


def _dumped(plain: Any) -> str:
    import yaml

    class PlainDumper(yaml.SafeDumper):
        """Without anchors: what is named twice is written twice."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    text: str = yaml.dump(plain, Dumper=PlainDumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return text
