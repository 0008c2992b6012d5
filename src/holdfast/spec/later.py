"""Checks that this release reads but cannot run: the end-state checks of the scenario spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from msgspec import UNSET, Struct, field

from holdfast.spec.fields import about
from holdfast.spec.forms import Duration

_PATH = about("Where, in the workspace.", min_length=1)
_FIELD = re.compile(
    r"request_count|(last_request|requests\[\d+\])(\.(body|headers|method|path)(\..+|\[.+)?|\.[\w$.\[\]]+)?"
)


def outside(path: str) -> Iterable[tuple[str, str]]:
    """What is wrong with a path that leaves the workspace."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        yield "path", "must stay inside the workspace: no .. and no absolute path"


def _regex(name: str, pattern: str | None) -> Iterable[tuple[str, str]]:
    if pattern is None:
        return
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as broken:
        yield name, f"not a regular expression: {broken}"


class CommandExit(Struct, frozen=True, kw_only=True):
    """A command in the workspace ends with the expected exit code."""

    command: Annotated[str, about("Run by sh -c from the workspace.", min_length=1)]
    exit_code: Annotated[int, about("The expected exit code.", ge=0, le=255)] = 0
    timeout: Annotated[Duration, about("Over it the check fails.")] = 120_000


class FileExists(Struct, frozen=True, kw_only=True):
    """A file or directory exists."""

    path: Annotated[str, _PATH]

    def problems(self) -> Iterable[tuple[str, str]]:
        return outside(self.path)


class FileAbsent(Struct, frozen=True, kw_only=True):
    """A file is missing."""

    path: Annotated[str, _PATH]

    def problems(self) -> Iterable[tuple[str, str]]:
        return outside(self.path)


class FileContent(Struct, frozen=True, kw_only=True):
    """A file contains, does not contain, or matches; all that is given must be true."""

    path: Annotated[str, _PATH]
    contains: Annotated[str | None, about("Text that must appear.")] = None
    not_contains: Annotated[str | None, about("Text that must not appear.")] = None
    pattern: Annotated[str | None, about("A regex that must match somewhere.")] = None

    def problems(self) -> Iterable[tuple[str, str]]:
        yield from outside(self.path)
        yield from _regex("pattern", self.pattern)
        if self.contains is None and self.not_contains is None and self.pattern is None:
            yield "", "needs at least one of contains, not_contains, pattern"


class Sql(Struct, frozen=True, kw_only=True):
    """A query's first value, or its number of rows, is as expected."""

    service: Annotated[str, about("A Postgres or MySQL service.", min_length=1)]
    query: Annotated[str, about("One statement.", min_length=1)]
    equals: Annotated[Any, about("The first column of the first row.")] = UNSET
    at_least: Annotated[float | None, about("The value is not less.")] = None
    at_most: Annotated[float | None, about("The value is not more.")] = None
    matches: Annotated[str | None, about("A regex that matches the value.")] = None
    one_of: Annotated[tuple[Any, ...] | None, about("The value is one of these.", min_length=1)] = None
    rows: Annotated[int | None, about("The number of rows.", ge=0)] = None
    timeout: Annotated[Duration, about("Over it the check fails.")] = 30_000

    def problems(self) -> Iterable[tuple[str, str]]:
        yield from _regex("matches", self.matches)
        rest = (self.at_least, self.at_most, self.matches, self.one_of, self.rows)
        if self.equals is UNSET and all(value is None for value in rest):
            yield "", "needs at least one of equals, at_least, at_most, matches, one_of, rows"


class Assertion(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that must hold of the requests a mock recorded."""

    field: Annotated[str, about("What is looked at, such as request_count or last_request.body.", min_length=1)]
    filters: Annotated[dict[str, Any], about("Which requests: method, path (glob), a header or body field.")] = {}
    equals: Annotated[Any, about("Equal, as JSON.")] = UNSET
    contains: Annotated[Any, about("A substring, key or member.")] = UNSET
    matches: Annotated[str | None, about("A regex that matches.")] = None
    at_least: Annotated[float | None, about("Not less.")] = None
    at_most: Annotated[float | None, about("Not more.")] = None

    @property
    def empty(self) -> bool:
        rest = (self.matches, self.at_least, self.at_most)
        return self.equals is UNSET and self.contains is UNSET and all(value is None for value in rest)


class HttpMockAssertions(Struct, frozen=True, kw_only=True):
    """A mock service was called the right way."""

    service: Annotated[str, about("A service of type http_mock with record: true.", min_length=1)]
    assertions: Annotated[tuple[Assertion, ...], about("What must hold.", min_length=1)]

    def problems(self) -> Iterable[tuple[str, str]]:
        for index, one in enumerate(self.assertions):
            if not _FIELD.fullmatch(one.field):
                known = "request_count, last_request…, requests[N]…"
                yield f"assertions[{index}].field", f"unknown field {one.field[:60]!r}: expected {known}"
            if one.empty:
                yield f"assertions[{index}]", "needs one of equals, contains, matches, at_least, at_most"
            for name, message in _regex("matches", one.matches):
                yield f"assertions[{index}].{name}", message


class Custom(Struct, frozen=True, kw_only=True):
    """A script of yours says passed: true."""

    script: Annotated[str, about("The script, beside the spec.", min_length=1)]
    runs_in: Annotated[Literal["host", "sandbox"], about("Where it runs.")] = "host"
    timeout: Annotated[Duration, about("Over it the check is an error.")] = 120_000


class Rubric(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What passing and failing look like."""

    pass_: Annotated[str | None, about("What passes.")] = field(default=None, name="pass")
    fail: Annotated[str | None, about("What fails.")] = None


class LlmAsJudge(Struct, frozen=True, kw_only=True):
    """A model rates the output at or above the threshold."""

    model: Annotated[str, about("A name in models, provider/name, or a known model.", min_length=1)]
    criteria: Annotated[str, about("What to evaluate.", min_length=1)]
    input_from: Annotated[str, about("agent_output, stdout, workspace, or <service>.<field>.", min_length=1)] = (
        "agent_output"
    )
    rubric: Annotated[Rubric, about("Shown to the judge.")] = Rubric()
    temperature: Annotated[float, about("Sent to the model.", ge=0, le=2)] = 0
    pass_threshold: Annotated[float, about("A score from here on passes.", ge=0, le=1)] = 0.5
    votes: Annotated[int, about("Ask so often and take the median.", ge=1, le=99)] = 1
    max_input: Annotated[int, about("Bytes of input shown to the judge.", ge=1)] = 65_536

    def problems(self) -> Iterable[tuple[str, str]]:
        if self.input_from not in ("agent_output", "stdout", "workspace") and "." not in self.input_from:
            yield "input_from", "expected agent_output, stdout, workspace, or <service>.<field>"


CHECKS: Mapping[str, type[Struct]] = {
    "command_exit": CommandExit,
    "custom": Custom,
    "file_absent": FileAbsent,
    "file_content": FileContent,
    "file_exists": FileExists,
    "http_mock_assertions": HttpMockAssertions,
    "llm_as_judge": LlmAsJudge,
    "sql": Sql,
}
