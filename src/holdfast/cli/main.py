"""The root command and the one place where exceptions become messages and exit codes."""

from __future__ import annotations

import codecs
import errno
import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO

import click
from click import UsageError as ClickUsageError

from holdfast.errors import (
    AgentUnavailable,
    HoldfastError,
    NothingProven,
    SpecError,
    UserError,
    format_error_place,
)
from holdfast.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from holdfast.model.score import Case


_SIMILAR = dict(zip("✔✘–·×…━╸≈→↵─←◆«»", "+x-|x.=-~>/-<*[]", strict=True))
"""Holdfast's signs in ASCII; each is one character, so tables stay aligned."""


def replace_unencodable(broken: UnicodeError) -> tuple[str, int]:
    """Replace what a stream's encoding does not have: signs by similar characters, others as JSON writes them."""
    assert isinstance(broken, UnicodeEncodeError)
    text = broken.object[broken.start : broken.end]
    return "".join(_SIMILAR.get(char) or json.dumps(char)[1:-1] for char in text), broken.end


codecs.register_error("holdfast", replace_unencodable)


class TolerantStream:
    """A text stream that discards its output once writing fails: `| head -1` must not change the verdict."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failure = ""
        """Why the output could not be written. A reader that closed the pipe is not a failure."""

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as refused:
            self._detach(refused)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as refused:
            self._detach(refused)

    def _detach(self, refused: OSError) -> None:
        if not isinstance(refused, BrokenPipeError):
            self.failure = refused.strerror or str(refused)
        # The descriptor itself is replaced, because Python flushes the stream again when it exits, and would fail then.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def tolerate_write_errors(stream: TextIO | None) -> TolerantStream:
    """Wrap a stream so that no write error ends the program. Output to a closed stream is discarded."""
    if isinstance(stream, TolerantStream):
        return stream
    if stream is None:
        stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open as long as the process
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="holdfast")
    return TolerantStream(stream)


_HINTS = {
    errno.ENOSPC: "free some space where runs are stored, or name another folder with HOLDFAST_DIR or --runs-dir",
    errno.EACCES: "you have no permission: check its owner and mode (ls -ld)",
}
HELD, VIOLATED, INTERRUPTED, HARNESS, USAGE, UNPROVEN = 0, 1, 2, 3, 4, 5

GROUPS = {
    "Run": {
        "init": "Create a starter spec and agent",
        "contract": "Run, validate or score a contract",
        "run": "Run a task in its sandbox, or mutated prompts",
        "replay": "Replay recorded sessions; import and export them",
        "map": "Show the agent's calls, and which faults were tried there",
        "hunt": "Find the smallest sets of faults that break a rule",
        "shrink": "Reduce a failed trial to the faults that make it fail",
        "ci": "Run every part of the file and decide whether it passes",
        "score": "Print only the overall score",
        "demo": "Run a good and a careless finance agent",
    },
    "Look at results": {
        "show": "Show a stored run or one trial",
        "view": "Browse all runs in a browser",
        "runs": "List the stored runs",
        "compare": "Compare two runs, rule by rule",
        "trend": "Show scores over time, and when a rule started to fail",
        "report": "Write a report of a stored run",
        "shell": "Open a shell in the sandbox of a failed trial",
        "promote": "Turn a failed trial into a session to replay",
        "judge": "Judge a stored run again, without the agent",
    },
    "Set up": {
        "validate": "Check a spec file; run nothing",
        "verify": "Call the agent once to see that it answers",
        "doctor": "Check that this machine can inject every fault",
        "faults": "List the faults you can inject",
        "checks": "List the checks a rule can use",
        "import": "Import Harbor and terminal-bench tasks, and Inspect logs",
        "schema": "Print the JSON Schema of spec files, for editors",
        "completion": "Print TAB completion for bash, zsh or fish",
    },
    "Plumbing": {
        "gateway": "Serve the LLM gateway for an agent you start yourself",
        "mcp-proxy": "Proxy an MCP server over stdio",
        "merge": "Join the shards of a run into one",
        "clean": "Remove leftovers of killed Holdfast processes",
    },
}
COMMANDS = {name: words for group in GROUPS.values() for name, words in group.items()}

_EXITS = """\b
Exit codes: 0 held, 1 violated, 2 interrupted, 3 harness error,
4 usage or configuration error, 5 nothing proven."""


_SHARED = {
    **dict.fromkeys(("checks", "faults"), "catalogue"),
    **dict.fromkeys(("clean", "shell"), "leftovers"),
    **dict.fromkeys(("compare", "runs", "trend"), "past_runs"),
    **dict.fromkeys(("ci", "contract", "run", "score"), "run"),
    **dict.fromkeys(("doctor", "verify"), "doctor"),
    **dict.fromkeys(("hunt", "map", "shrink"), "hunt"),
    **dict.fromkeys(("init", "schema"), "init"),
    **dict.fromkeys(("judge", "report", "show"), "show"),
    "completion": "option_values",
}
"""The modules with several commands, each called `<name>_command` there."""


class Root(click.Group):
    """The root command, which lists its commands without importing them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Click 8.2 made a missing subcommand a usage error; `holdfast` alone is a question.
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit(HELD)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        # Only the module of this command is imported: --help and TAB must not load what a run needs.
        name = "import_" if cmd_name == "import" else cmd_name.replace("-", "_")
        module = vars(import_module(f"holdfast.cli.{_SHARED.get(cmd_name, name)}"))
        command: click.Command = module[f"{name}_command" if cmd_name in _SHARED else "command"]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, 1)
            more = f" Did you mean {near[0]}?" if near else f" Available: {', '.join(COMMANDS)}."
            raise ClickUsageError(f"there is no command {args[0]!r}.{more}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names with their descriptions. click would import every command for that."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        # fish cuts a description at a comma
        items = (CompletionItem(name, help=summary.replace(",", ";")) for name, summary in COMMANDS.items())
        return [item for item in items if item.value.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), words) for name, words in commands.items()])


@click.command(cls=Root, epilog=_EXITS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="holdfast")
def root() -> None:
    """Test AI agents while their tools, models and services fail.

    \b
      holdfast init             create a spec and an agent
      holdfast contract run     run every rule in every scenario
    """


def run(args: Sequence[str]) -> int:
    """Run a command and turn every way in which it can end into an exit code."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, errors = tolerate_write_errors(sys.stdout), tolerate_write_errors(sys.stderr)
    try:
        code = _run(args)
        out.flush()
        if out.failure:  # a full disk behind `> file`
            print(f"error: cannot write to stdout: {out.failure}", file=errors)
            return code or HARNESS
        return code
    finally:
        errors.flush()
        sys.stdout, sys.stderr = before


def _run(args: Sequence[str]) -> int:
    as_json = "--json" in args
    try:
        result = root.main(list(args), prog_name="holdfast", standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as wrong:
        return _print_usage_error(wrong, as_json)
    except (click.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except click.ClickException as wrong:
        return _print_error(wrong.format_message(), as_json, USAGE, code="usage")
    except HoldfastError as error:
        return show_error(error, as_json)
    except OSError as refused:
        if os.environ.get("HOLDFAST_DEBUG"):
            raise
        hint = _HINTS.get(refused.errno or 0, "")
        message = f"cannot use {refused.filename or 'a file or stream'}: {refused.strerror or refused}"
        return _print_error(message, as_json, HARNESS, code="file-unusable", hint=hint)
    except Exception as bug:
        if os.environ.get("HOLDFAST_DEBUG"):
            raise
        place = format_error_place(bug)
        # An exception in a plug-in, such as in its `lint`, passes through Holdfast's code, too.
        advice = "if this is your plug-in, fix it; otherwise " if place else ""
        hint = f"{advice}this is a bug in Holdfast; HOLDFAST_DEBUG=1 shows where"
        return _print_error(f"{type(bug).__name__}: {bug}{place}", as_json, HARNESS, code="bug", hint=hint)
    return result if isinstance(result, int) else HELD


def show_error(error: HoldfastError, as_json: bool) -> int:
    """Print the error and what to do about it. The exit code says whether the user or Holdfast caused it."""
    if isinstance(error, SpecError):
        from holdfast.cli.screen import show_problems

        show_problems(error.file, error.source, error.problems, as_json=as_json, ran=False)
        return USAGE
    message, code = str(error), error.code
    if isinstance(error, AgentUnavailable):
        status = USAGE if error.config else HARNESS
        return _print_error(message, as_json, status, code=code, hint=error.hint, body=error.body, cases=error.cases)
    status = USAGE if isinstance(error, UserError) else UNPROVEN if isinstance(error, NothingProven) else HARNESS
    return _print_error(message, as_json, status, code=code, hint=error.hint if isinstance(error, UserError) else "")


_BODY_HEAD, _BODY_TAIL = 8, 12
"""Lines of an agent's output or response that an error shows."""
_OPTIONS_ELSEWHERE = {
    "--ci": "holdfast ci runs every part of the file and takes --min-score N, 0 to 100",
    "--verify-only": "holdfast verify asks the agent once and runs nothing else",
    "--input": "name the stored run itself: holdfast runs lists them",
}
"""Options that other tools have, and the command that does the same here."""


def _print_usage_error(wrong: click.UsageError, as_json: bool) -> int:
    command = wrong.ctx.command_path if wrong.ctx else "holdfast"
    if isinstance(wrong, click.NoSuchOption) and wrong.option_name in _OPTIONS_ELSEWHERE:
        message, hint = f"{command} has no {wrong.option_name}", _OPTIONS_ELSEWHERE[wrong.option_name]
    else:
        # click lists choices on lines of their own
        message, hint = " ".join(wrong.format_message().split()), f"see {command} --help"
    return _print_error(message, as_json, USAGE, code="usage", hint=hint)


def _print_error(
    message: str, as_json: bool, status: int, *, code: str, hint: str = "", body: str = "", cases: Sequence[Case] = ()
) -> int:
    """Print `error: message  [code]`, the body and the hint, or all of it as JSON. Return the exit status."""
    from holdfast.report.safe import make_visible

    if as_json:
        from holdfast.cli.screen import print_document

        error = {"message": message, "code": code, "hint": hint, "body": body}
        document: dict[str, Any] = {"score": None, "passed": False, "exit_code": status, "errors": [error]}
        if cases:
            from holdfast.report.formats.json import build_undecided

            document["parts"] = build_undecided(cases)
        print_document(document)
        return status
    print(f"error: {make_visible(message)}" + (f"  [{code}]" if code else ""), file=sys.stderr)
    lines = body.splitlines()
    if len(lines) > _BODY_HEAD + _BODY_TAIL:  # an HTML page identifies itself at its start, a traceback at its end
        middle = f"… {len(lines) - _BODY_HEAD - _BODY_TAIL} lines …"
        lines = [*lines[:_BODY_HEAD], middle, *lines[-_BODY_TAIL:]]
    for line in lines:
        print(f"  | {make_visible(line)}", file=sys.stderr)
    if hint:
        print(f"  {make_visible(hint)}", file=sys.stderr)
    return status
