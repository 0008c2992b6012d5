"""Pages from templates: HTML with `{{ expression }}`, and `{% if %}`, `{% for %}` and `{% include name %}` around it.

Expressions are Python's, and what they give is escaped. `{{= expression }}` is put in as it is: that is for scripts and
styles of ours, never for data. A template becomes Python (template_code.py), which takes longer than a short run: it is
kept as byte code, as Python keeps its own.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

FOLDER = Path(__file__).parent / "templates"
_TRANSLATOR = Path(__file__).with_name("template_code.py")
_DIGEST = 16


class PageTemplate:
    """A page to be filled in."""

    def __init__(self, name: str, folder: Path = FOLDER) -> None:
        self._code = _code(name, folder)
        self._name = name

    def pieces(self, **names: Any) -> Iterator[str]:
        """The page, a few characters at a time."""
        used = {"escaped", "str", *names}
        # A name that a loop takes is local to the whole page: what was given under it could not be read.
        if taken := used.intersection(self._code.co_varnames + self._code.co_cellvars):
            raise ValueError(f"{self._name}: a loop takes the name {min(taken)}, which is in use: name it otherwise")
        made: Iterator[str] = FunctionType(self._code, {"escaped": escaped, **names})()
        return made


@cache
def template(name: str) -> PageTemplate:
    """One of our pages."""
    return PageTemplate(name)


def escaped(value: Any) -> str:
    """The value as text of a page or of an attribute."""
    text = str(value)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("'", "&#39;").replace('"', "&#34;")


def _code(name: str, folder: Path) -> CodeType:
    """What is kept, if it was made of the very same; else it is made, and kept where that is possible."""
    sources = {file.name: file.read_text("utf-8") for file in sorted(folder.glob("*.html"))}
    made_of = MAGIC_NUMBER + repr(sources).encode() + _TRANSLATOR.read_bytes()
    digest = blake2b(made_of, digest_size=_DIGEST).digest()
    file = folder / "__pycache__" / f"{name}.{sys.implementation.cache_tag}"
    try:
        kept = file.read_bytes()
        if kept[:_DIGEST] == digest:
            code: CodeType = marshal.loads(kept[_DIGEST:])  # noqa: S302  # as Python reads its own
            return code
    except (OSError, EOFError, ValueError, TypeError):  # none there, or torn
        pass
    from holdfast.report.template_code import compiled

    code = compiled(name, sources.__getitem__)
    if not sys.dont_write_bytecode:
        _keep(file, digest + marshal.dumps(code))
    return code


def _keep(file: Path, data: bytes) -> None:
    new = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(exist_ok=True)
        new.write_bytes(data)
        new.replace(file)
    except OSError:
        return
