"""holdfast init | schema"""

from __future__ import annotations

import json
import sys
from importlib.resources import files as packaged
from pathlib import Path
from shlex import quote
from textwrap import fill

import click

from holdfast.cli import options as shared
from holdfast.errors import UsageError
from holdfast.folders import OWN
from holdfast.planes.llm.sources.assigned import COMPATIBLE
from holdfast.planes.llm.sources.provider_hosts import HOSTS
from holdfast.report.formats.files import write_atomically
from holdfast.spec import json_schema
from holdfast.starter.project import find_recipes
from holdfast.starter.recipe import Recipe, find_version, list_names, read_files, read_recipe
from holdfast.store.rundir import make_own_folder


def format_recipes() -> str:
    """Return every recipe with its purpose."""
    recipes = {name: read_recipe(name) for name in list_names()}
    width = max(map(len, recipes))
    lines = [f"  {name:{width}}  {recipe.title} {recipe.version}" for name, recipe in recipes.items()]
    return "\n".join(["holdfast init --from NAME [DIR], with one of", *lines])


def build_recipe_files(name: str, model: str | None) -> dict[str, bytes]:
    """Return the files to write. With `model`, that model answers instead of the script."""
    recipe, files = read_recipe(name), read_files(name)
    if model is None:
        return files
    entry = _format_model_entry(name, recipe, model)
    spec = _replace_models(files["holdfast.yaml"].decode(), f"# The model that answers its calls.\n{entry}")
    return {**{path: text for path, text in files.items() if path != "model.yaml"}, "holdfast.yaml": spec.encode()}


def _replace_models(spec: str, section: str) -> str:
    """Replace the `models:` section of the spec and the comment directly above it."""
    lines = spec.splitlines(keepends=True)
    start = lines.index("models:\n")
    end = next((n for n in range(start + 1, len(lines)) if not lines[n].startswith(" ")), len(lines))
    while start and lines[start - 1].startswith("#"):
        start -= 1
    return "".join([*lines[:start], section, *lines[end:]])


def _format_model_entry(name: str, recipe: Recipe, model: str) -> str:
    provider, _, called = model.partition("/")
    if provider not in HOSTS or not called:
        raise UsageError(
            f"--model {model!r} is not PROVIDER/NAME", hint=f"providers: {', '.join(HOSTS)}", code="argument-invalid"
        )
    if not recipe.speaks:
        raise UsageError(f"--model: {name} does not call a model", code="option-inapplicable")
    able = [host for host in HOSTS if host == recipe.speaks or host in COMPATIBLE]
    if provider not in able:
        message = f"--model {model}: {name} uses the format of {recipe.speaks}, which {provider} does not support"
        raise UsageError(message, hint=f"providers that can answer it: {', '.join(able)}", code="option-inapplicable")
    key = "" if provider == "ollama" else f', api_key: "${{{HOSTS[provider].key_variables[0][0]}}}"'
    return f'models:\n  "*": {{provider: {provider}, name: "{called}"{key}}}\n'


def format_next_steps(name: str, model: str | None, change: str) -> str:
    """Describe what is missing on this machine and what to type next."""
    recipe = read_recipe(name)
    installed = find_version(recipe)
    lines = [fill(f"note: {recipe.note}", 100, subsequent_indent="  ")] if recipe.note else []
    if installed and installed != recipe.version:
        lines.append(f"note: {recipe.package} {installed} is installed; {recipe.version} was tested ({recipe.tried})")
    lines.append("Next:")
    if installed is None:
        where = "in Holdfast's environment" if not recipe.program else f"({recipe.program} is not on the PATH)"
        lines.append(f"  {recipe.install}     # it is not installed {where}")
    if model is not None and not model.startswith("ollama/"):
        lines.append("  set the key that models: in holdfast.yaml names")
    return "\n".join([*lines, f"  {change}{recipe.run}"])


_PYTHON = {"holdfast.yaml": "holdfast.yaml", "agent.py": "agent.py"}
_HTTP = {"holdfast.yaml": "http.yaml", "agent.py": "http_agent.py"}
_COMMAND = {"holdfast.yaml": "command.yaml", "agent.py": "command_agent.py", "model.yaml": "model.yaml"}
"""The files to write, each with the starter file that it is copied from."""
_NO_NAME = ""
_SPEC = "holdfast.yaml"
_SCHEMA = ".holdfast/schema.json"
_FOR_EDITORS = f"# yaml-language-server: $schema={_SCHEMA}\n".encode()
"""The first line of a spec, by which editors find its schema."""

_NEXT_PYTHON = """\
Next:
  {cd}holdfast contract run
One rule fails when the tool is down. Fix agent.py at the marked line and run it again."""
_NEXT_HTTP = """\
Next:
  {cd}holdfast contract run
One rule fails: agent.py repeats text from the question. Fix agent.py at the marked line and run it again.
For your own agent, set agent.command (or remove it), endpoint, request_template and response_path:
  holdfast verify"""


@click.command(name="init")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("--http", is_flag=True, help="Create a spec for an agent that answers over HTTP.")
@click.option(
    "--command", "as_command", is_flag=True, help="Create an agent that runs as a program, with a scripted model."
)
@click.option(
    "--from",
    "recipe",
    metavar="[NAME]",
    is_flag=False,
    flag_value=_NO_NAME,
    help="Create a spec for a known agent: claude-code, codex, langgraph, … Lists them without a name.",
    shell_complete=shared.complete_from("recipes"),
)
@click.option("--model", metavar="PROVIDER/NAME", help="With --from: use a real model instead of the script.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init_command(folder: Path, http: bool, as_command: bool, recipe: str | None, model: str | None, force: bool) -> int:
    """Create a starter spec and agent, ready to run.

    \b
      holdfast init
      holdfast init my-agent
      holdfast init --http
      holdfast init --command
      holdfast init --from claude-code
    """
    if http + as_command + (recipe is not None) > 1:
        raise UsageError("--http, --command and --from cannot be combined", code="options-conflict")
    if model is not None and recipe is None:
        raise UsageError("--model requires --from", code="option-inapplicable")
    if recipe == _NO_NAME:
        print(format_recipes())
        return 0
    change = "" if folder.resolve() == Path.cwd() else f"cd {quote(str(folder))} && "
    if recipe is not None:
        _write(folder, build_recipe_files(recipe, model), force)
        print(format_next_steps(recipe, model, change))
        return 0
    names, starter = _HTTP if http else _COMMAND if as_command else _PYTHON, packaged("holdfast.starter")
    _write(folder, {name: (starter / source).read_bytes() for name, source in names.items()}, force)
    print((_NEXT_HTTP if http else _NEXT_PYTHON).format(cd=change))
    for name in find_recipes(folder):  # for packages that the project depends on
        print(f"This project uses {name}. To create a contract for it:\n  holdfast init --from {name} holdfast-{name}")
    return 0


def _refuse_to_overwrite(paths: list[Path]) -> None:
    existing = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if existing:
        problem = f"{' and '.join(existing)} already {'exists' if len(existing) == 1 else 'exist'}; nothing was written"
        raise UsageError(problem, hint="name another folder, or overwrite with --force", code="file-exists")


def _write(folder: Path, files: dict[str, bytes], force: bool) -> None:
    if not force:
        _refuse_to_overwrite([folder / name for name in files])
    try:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / name, [_FOR_EDITORS, text] if name == _SPEC else [text])
        write_schema(folder / _SCHEMA)  # a local file, so editors need no network
    except OSError as refused:
        raise UsageError(
            f"cannot write {refused.filename or folder}: {refused.strerror}", code="file-unusable"
        ) from refused
    for name in files:
        print(f"wrote {folder / name}")


@click.command(name="schema")
@click.option("-o", "output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write to FILE.")
def schema_command(output: Path | None) -> None:
    """Print the JSON Schema of the spec, for editors; `holdfast init` writes it for you.

    \b
      holdfast schema -o .holdfast/schema.json
      # first line of holdfast.yaml:
      # yaml-language-server: $schema=.holdfast/schema.json
    """
    if output is None:
        sys.stdout.write(_format_schema())
        return
    folder = output.parent.parent if output.parent.name == OWN else output.parent
    if not folder.exists():
        raise UsageError(
            f"cannot write {output}: there is no folder {folder}",
            hint=f"create it: mkdir -p {folder}",
            code="file-unusable",
        )
    try:
        write_schema(output)
    except OSError as refused:
        raise UsageError(f"cannot write {output}: {refused.strerror}", code="file-unusable") from refused
    print(f"wrote {output}")


def write_schema(path: Path) -> None:
    """Write the schema, including every installed plug-in."""
    if path.absolute().parent.name == OWN:
        make_own_folder(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, [_format_schema().encode()])


def _format_schema() -> str:
    return json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"
