"""The size and shape of the code, counted: the figures that CONTRIBUTING.md keeps an eye on.

    python tools/figures.py                 # the whole product and its tests
    python tools/figures.py planes world    # only these folders of src/holdfast
    python tools/figures.py -v              # and where: each long function, large class and pinned sentence

A line of code is one that is neither blank, nor a comment, nor part of a docstring. `python benchmarks/walk.py` counts
how often a run changes file.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ROOT / "src/holdfast"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LONG_FUNCTION = 40
LARGE_CLASS = 20
SMALL_FILE = 40
SENTENCE = 4
"""Words from which a string in an assertion is a sentence rather than a name or a value."""


class Module:
    """One file, read once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.lines = self.text.count("\n")
        tokens = list(tokenize.generate_tokens(io.StringIO(self.text).readline))
        comments = {t.start[0] for t in tokens if t.type == tokenize.COMMENT and not t.line[: t.start[1]].strip()}
        skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        code = {n for t in tokens if t.type not in skipped and t.string for n in range(t.start[0], t.end[0] + 1)}
        self.comments = len(comments)
        self.code = len(code - self._docstring_lines())

    def _docstring_lines(self) -> set[int]:
        # Below a constant or a field a string is its docstring, too, so every bare string counts.
        return {
            line
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or 0) + 1)
        }

    def functions(self) -> Iterator[tuple[str, int]]:
        """Each function with its lines, docstring included."""
        for node in ast.walk(self.tree):
            if isinstance(node, FUNCTIONS):
                yield f"{self.place(node)} {node.name}", (node.end_lineno or 0) - node.lineno + 1

    def classes(self) -> Iterator[tuple[str, int]]:
        """Each class with its methods, properties included."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef):
                yield f"{self.place(node)} {node.name}", sum(isinstance(part, FUNCTIONS) for part in node.body)

    def late_imports(self) -> int:
        """Imports inside functions."""
        bodies = [node for node in ast.walk(self.tree) if isinstance(node, FUNCTIONS)]
        imports = (part for body in bodies for part in ast.walk(body) if isinstance(part, ast.Import | ast.ImportFrom))
        return len({part.lineno for part in imports})

    def imported(self) -> set[str]:
        """Modules that it imports, in dotted form; `from x import y` may mean the module x.y."""
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        return found

    def pinned_sentences(self) -> Iterator[str]:
        """Assertions, and `pytest.raises(match=…)`, that hold a sentence to its words."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assert):
                held: list[ast.AST] = [node.test]
            elif isinstance(node, ast.Call):
                held = [keyword.value for keyword in node.keywords if keyword.arg == "match"]
            else:
                continue
            strings = (part for root in held for part in ast.walk(root) if isinstance(part, ast.Constant))
            if any(isinstance(s.value, str) and _is_sentence(s.value) for s in strings):
                yield self.place(node)

    def place(self, node: ast.stmt | ast.expr) -> str:
        return f"{self.path.relative_to(ROOT)}:{node.lineno}"


def _is_sentence(text: str) -> bool:
    words = [word for word in text.split() if word.strip(".,:;()'\"").isalpha()]
    return len(words) >= SENTENCE and "\n" not in text.strip()


def _single_customers(modules: list[Module]) -> int:
    """Modules that exactly one other module imports."""
    names = {".".join(m.path.relative_to(ROOT / "src").with_suffix("").parts): m for m in modules}
    customers: dict[str, int] = defaultdict(int)
    for module in modules:
        for name in module.imported() & names.keys():
            customers[name] += 1
    return sum(count == 1 for count in customers.values())


def _print(name: str, value: object, places: list[str], *, verbose: bool) -> None:
    print(f"{name:<58}{value:>12}")
    for place in places if verbose else ():
        print(f"    {place}")


def main(words: list[str]) -> None:
    verbose = "-v" in words
    folders = [PRODUCT / word for word in words if word != "-v"] or [PRODUCT]
    if missing := [folder.name for folder in folders if not folder.is_dir()]:
        sys.exit(f"src/holdfast has no folder {', '.join(missing)}")
    modules = [Module(path) for folder in folders for path in sorted(folder.rglob("*.py"))]
    lengths = sorted(length for module in modules for _, length in module.functions())
    long = [f"{place} {n}" for module in modules for place, n in module.functions() if n > LONG_FUNCTION]
    large = [f"{place} {n}" for module in modules for place, n in module.classes() if n > LARGE_CLASS]
    at = [lengths[int(len(lengths) * share)] for share in (0.9, 0.99)]
    comments, lines = sum(m.comments for m in modules), sum(m.lines for m in modules)
    _print("src: lines of code", sum(m.code for m in modules), [], verbose=verbose)
    _print("src: all lines", lines, [], verbose=verbose)
    _print("src: files", len(modules), [], verbose=verbose)
    _print(f"src: files under {SMALL_FILE} lines", sum(m.lines < SMALL_FILE for m in modules), [], verbose=verbose)
    _print("src: modules with one customer", _single_customers(modules), [], verbose=verbose)
    _print("src: imports inside functions", sum(m.late_imports() for m in modules), [], verbose=verbose)
    _print("src: full-line comments, % of all lines", f"{100 * comments / lines:.2f}", [], verbose=verbose)
    shape = f"{statistics.median(lengths):.0f} / {at[0]} / {at[1]}"
    _print("src: lines of a function, median / p90 / p99", shape, [], verbose=verbose)
    _print(f"src: functions over {LONG_FUNCTION} lines", len(long), long, verbose=verbose)
    _print(f"src: classes over {LARGE_CLASS} methods", len(large), large, verbose=verbose)
    if folders == [PRODUCT]:
        tests = [Module(path) for path in sorted((ROOT / "tests").rglob("*.py"))]
        pinned = [place for module in tests for place in module.pinned_sentences()]
        _print("tests: all lines", sum(m.lines for m in tests), [], verbose=verbose)
        _print("tests: assertions pinned to a sentence", len(pinned), pinned, verbose=verbose)


if __name__ == "__main__":
    main(sys.argv[1:])
