"""Changes one place of the product at a time and asks the tests that reach it: what no test notices, no test holds.

    python tools/mutants.py mark    # which tests reach which of the places; writes build/mutants/
    python tools/mutants.py try     # each mutant against its tests, the quickest first
    python tools/mutants.py tell    # how many survived, and which

It edits `src/` in place and puts it back: use a copy of the repository, installed by `make dev`. What it is given after
`--` goes to pytest, such as `-m ""` for the long tests as well.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ROOT / "src/holdfast"
KEPT = ROOT / "build/mutants"
LOG = KEPT / "pytest.log"
KILLED = (1, 2)
"""Of pytest: a test failed, or could not be collected."""
NOT_FOUND = 4
ROOMS = ("judge", "score", "plan", "faults", "planes/injection/weather.py", "planes/llm/codecs", "checks")
SWAPS: dict[type[ast.AST], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.Div: "*",
}
MARK = '__import__("holdfast._reached")._reached.at({})'
MARKS = """import os
told = set()
def at(number):
    key = (number, os.environ.get("PYTEST_CURRENT_TEST", "?").rsplit(" ", 1)[0])
    if key not in told:
        told.add(key)
        try:
            with open({path!r}, "a") as file:
                file.write(f"{{key[0]}}\\t{{key[1]}}\\n")
        except OSError:
            pass
"""


@dataclass(frozen=True)
class Mutant:
    """A stretch of one line, and what stands there instead."""

    number: int
    file: str
    line: int
    start: int
    end: int
    text: str
    statement: int  # the line that the marking statement goes before

    def applied(self, source: str) -> str:
        lines = source.splitlines(keepends=True)
        found = lines[self.line - 1].encode()
        lines[self.line - 1] = (found[: self.start] + self.text.encode() + found[self.end :]).decode()
        return "".join(lines)


def changes(node: ast.AST, source: str) -> Iterator[tuple[ast.expr, str]]:
    """What may stand in an expression's place."""

    def segment(part: ast.expr) -> str | None:
        return ast.get_source_segment(source, part)

    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in SWAPS:
            yield node, f"{segment(left)} {SWAPS[type(op)]} {segment(right)}"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPS:
            yield node, f"{segment(left)} {SWAPS[type(op)]} {segment(right)}"
        case ast.BoolOp(op=op, values=[left, right]):
            yield node, f"{segment(left)} {'or' if isinstance(op, ast.And) else 'and'} {segment(right)}"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"{segment(operand)}"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield node, str(value + 1)
        case ast.If(test=test) | ast.IfExp(test=test):
            yield test, f"(not ({segment(test)}))"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield value, "None"


def places(file: Path) -> Iterator[tuple[int, int, int, str, int]]:
    """Every change of one line inside a function of a file: line, start, end, text, the line of its statement."""
    source = file.read_text()

    def walk(node: ast.AST, statement: int, inside: bool) -> Iterator[tuple[int, int, int, str, int]]:
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or field in ("annotation", "returns", "decorator_list", "args"):
                    continue
                chained = isinstance(node, ast.If) and field == "orelse" and isinstance(child, ast.If)
                within = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                at = child.lineno if isinstance(child, ast.stmt) and within and not chained else statement
                if within and at:
                    for place, text in changes(child, source):
                        if place.lineno == place.end_lineno and place.end_col_offset is not None:
                            yield place.lineno, place.col_offset, place.end_col_offset, text, at
                yield from walk(child, at, within)

    yield from walk(ast.parse(source), 0, False)


def chosen(count: int, seed: int) -> list[Mutant]:
    """As many of each room, drawn by the seed."""
    luck = random.Random(seed)
    drawn: list[Mutant] = []
    for index, room in enumerate(ROOMS):
        path = PRODUCT / room
        files = [path] if path.is_file() else sorted(path.rglob("*.py"))
        found = [(str(file.relative_to(ROOT)), *place) for file in files for place in places(file)]
        share = count * (index + 1) // len(ROOMS) - count * index // len(ROOMS)
        drawn += [Mutant(len(drawn) + n, *one) for n, one in enumerate(luck.sample(found, share))]
    return drawn


@contextmanager
def written(files: dict[Path, str]) -> Iterator[None]:
    """Texts of files, put back at the end."""
    before = {file: file.read_text() if file.exists() else None for file in files}
    try:
        for file, text in files.items():
            file.write_text(text)
        yield
    finally:
        for file, old in before.items():
            if old is None:
                file.unlink()
            else:
                file.write_text(old)


def marked(mutants: list[Mutant], reached: Path) -> dict[Path, str]:
    """The product with a mark before the statement of each mutant."""
    by_file: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_file[mutant.file].append(mutant)
    texts = {PRODUCT / "_reached.py": MARKS.format(path=str(reached))}
    for name, ones in by_file.items():
        lines = (ROOT / name).read_text().splitlines(keepends=True)
        for mutant in sorted(ones, key=lambda one: -one.statement):
            place = lines[mutant.statement - 1]
            indent = place[: len(place) - len(place.lstrip())]
            lines.insert(mutant.statement - 1, f"{indent}{MARK.format(mutant.number)}\n")
        texts[ROOT / name] = "".join(lines)
        ast.parse(texts[ROOT / name])
    return texts


def mark(count: int, seed: int, more: list[str]) -> None:
    """Runs all tests on a marked product and keeps who reached what."""
    KEPT.mkdir(parents=True, exist_ok=True)
    mutants = chosen(count, seed)
    (KEPT / "mutants.json").write_text(json.dumps([asdict(one) for one in mutants], indent=1))
    reached = KEPT / "reached.tsv"
    reached.write_text("")
    with written(marked(mutants, reached)):
        pytest_code(["-n", "4", "--dist", "worksteal", "-q", *more, "tests"])


def pytest_code(arguments: list[str], limit: float | None = None) -> int:
    """Pytest's exit code; 1 where it took longer than the limit: a mutant that never ends is noticed."""
    command = [sys.executable, "-m", "pytest", *arguments]
    environment = {**os.environ, "CI": "true"}
    with LOG.open("w") as log:
        it = subprocess.Popen(  # noqa: S603  # pytest, on this repository
            command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            return it.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(it.pid, signal.SIGKILL)
            it.wait()
            return 1


def there_now(more: list[str]) -> set[str]:
    """The tests that are run today: since the marking some may have gone."""
    pytest_code(["--collect-only", "-q", *more, "tests"])
    return set(LOG.read_text().splitlines())


def reaching(there: set[str]) -> dict[int, list[str]]:
    """The tests that reach each mutant: those of one module before those that start programs."""
    found: dict[int, set[str]] = defaultdict(set)
    for line in (KEPT / "reached.tsv").read_text().splitlines():
        number, test = line.split("\t", 1)
        if test in there:
            found[int(number)].add(test)
    order = ("tests/unit", "tests/golden", "tests/conformance", "tests/quality", "tests/properties", "tests/acceptance")

    def rank(test: str) -> int:
        return next((at for at, room in enumerate(order) if test.startswith(room)), len(order))

    return {number: sorted(ones, key=lambda test: (rank(test), test)) for number, ones in found.items()}


def try_all(share: str, limit: float, more: list[str]) -> None:
    """Each mutant against the tests that reach it; one line a mutant, and what was tried is not tried again."""
    mine, of = map(int, share.split("/"))
    results = KEPT / "results.jsonl"
    results.touch()
    done = {json.loads(line)["number"] for line in results.read_text().splitlines()}
    by_number = reaching(there_now(more))
    for each in json.loads((KEPT / "mutants.json").read_text()):
        mutant = Mutant(**each)
        if mutant.number % of != mine - 1 or mutant.number in done:
            continue
        ids = by_number.get(mutant.number, [])
        told = {
            "number": mutant.number,
            "file": mutant.file,
            "line": mutant.line,
            "text": mutant.text,
            "tests": len(ids),
        }
        told["outcome"] = attempt(mutant, ids, limit, more) if ids else "reached by no test"
        with results.open("a") as file:
            file.write(json.dumps(told) + "\n")
        print(*told.values(), flush=True)


def attempt(mutant: Mutant, ids: list[str], limit: float, more: list[str]) -> str:
    listed = KEPT / f"ids-{mutant.number}.txt"
    listed.write_text("\n".join(ids))
    file = ROOT / mutant.file
    changed = mutant.applied(file.read_text())
    ast.parse(changed)  # what cannot be read is no mutant
    with written({file: changed}):
        code = pytest_code(["-x", "-q", "-p", "no:cacheprovider", *more, f"@{listed}"], limit)
    if code == NOT_FOUND and pytest_code(["--collect-only", "-q", *more, f"@{listed}"]) == 0:
        return "killed by tests that cannot be collected"
    if code not in KILLED:
        return "survived" if code == 0 else f"not tried: pytest ended with {code}"
    log = LOG.read_text()
    killer = next((line for line in log.splitlines() if line.startswith(("FAILED", "ERROR"))), f"exit {code}")
    return f"killed by {killer}"


def tell() -> None:
    results = [json.loads(line) for line in (KEPT / "results.jsonl").read_text().splitlines()]
    untried = sum(one["outcome"].startswith("not tried") for one in results)
    alive = [one for one in results if not one["outcome"].startswith("killed")]
    for one in alive:
        print(f"{one['file']}:{one['line']}  {one['text']}  {one['outcome']} ({one['tests']} tests)")
    print(f"{len(alive) - untried} of {len(results)} mutants survived, {untried} were not tried")


def main() -> None:
    given, more = sys.argv[1:], []
    if "--" in given:
        given, more = given[: given.index("--")], given[given.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("mark", "try", "tell"))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--share", default="1/1", help="try only every n-th: 1/2, 2/2, each in a copy of its own")
    parser.add_argument("--limit", type=float, default=900, help="seconds a mutant at most")
    options = parser.parse_args(given)
    match options.step:
        case "mark":
            mark(options.count, options.seed, more)
        case "try":
            try_all(options.share, options.limit, more)
        case "tell":
            tell()


if __name__ == "__main__":
    main()
