"""holdfast init"""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.errors import UsageError

_PYTHON = {"holdfast.yaml": "holdfast.yaml", "agent.py": "agent.py"}
_HTTP = {"holdfast.yaml": "http.yaml"}
_COMMAND = {"holdfast.yaml": "command.yaml", "agent.py": "command_agent.py", "model.yaml": "model.yaml"}
"""What is written, and the starter file it is written from."""

_NEXT_PYTHON = """\
Next:
  {cd}holdfast contract run
One rule breaks when the tool is down. Mend agent.py where it says so, and run again."""
_NEXT_HTTP = """\
Next: set agent.endpoint, request_template and response_path to your agent's, then
  {cd}holdfast verify
  holdfast contract run"""


@click.command(name="init")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("--http", is_flag=True, help="A spec for an agent that answers over HTTP.")
@click.option("--command", "as_command", is_flag=True, help="A program that Holdfast starts, with a scripted model.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
def command(folder: Path, http: bool, as_command: bool, force: bool) -> int:
    """Write a starter spec and agent that run at once.

    \b
      holdfast init
      holdfast init my-agent
      holdfast init --http
      holdfast init --command
    """
    if http and as_command:
        raise UsageError("--http and --command exclude each other")
    files = _HTTP if http else _COMMAND if as_command else _PYTHON
    if not force:
        _refuse_to_overwrite([folder / name for name in files])
    _write(folder, files)
    for name in files:
        print(f"wrote {folder / name}")
    print((_NEXT_HTTP if http else _NEXT_PYTHON).format(cd=_change_to(folder)))
    return 0


def _refuse_to_overwrite(paths: list[Path]) -> None:
    there = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if there:
        verb = "is" if len(there) == 1 else "are"
        raise UsageError(
            f"{' and '.join(there)} {verb} already there; nothing was written",
            hint="name another folder, or overwrite with --force",
        )


def _write(folder: Path, files: dict[str, str]) -> None:
    from importlib.resources import files as packaged

    from holdfast.report.files import place

    starter = packaged("holdfast.starter")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, source in files.items():
            place(folder / name, [(starter / source).read_bytes()])
    except OSError as refused:
        raise UsageError(f"cannot write {refused.filename or folder}: {refused.strerror}") from refused


def _change_to(folder: Path) -> str:
    from shlex import quote

    return "" if folder.resolve() == Path.cwd() else f"cd {quote(str(folder))} && "
