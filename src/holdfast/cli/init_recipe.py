"""`holdfast init --from NAME`: the files of a recipe, and what is to be typed next."""

from __future__ import annotations

from textwrap import fill

from holdfast.errors import UsageError
from holdfast.starter.recipe import Recipe, read_recipe, recipe_files, recipe_names

_SCRIPTED = (
    b'# Who answers its model calls: a script, so that no key is needed.\nmodels:\n  "*": {script: model.yaml}\n'
)
"""As it stands in the spec of every recipe with a model."""


def list_recipes() -> str:
    """Every recipe, with what it is for."""
    known = {name: read_recipe(name) for name in recipe_names()}
    width = max(map(len, known))
    lines = [f"  {name:{width}}  {recipe.title} {recipe.version}" for name, recipe in known.items()]
    return "\n".join(["holdfast init --from NAME [DIR], with one of", *lines])


def chosen_files(name: str, model: str | None) -> dict[str, bytes]:
    """What is written; with a model, that one answers in place of the script."""
    recipe, files = read_recipe(name), recipe_files(name)
    if model is None:
        return files
    entry = _entry(name, recipe, model)
    spec = files["holdfast.yaml"].replace(_SCRIPTED, f"# Who answers its model calls.\n{entry}".encode())
    return {**{path: text for path, text in files.items() if path != "model.yaml"}, "holdfast.yaml": spec}


def _entry(name: str, recipe: Recipe, model: str) -> str:
    from holdfast.planes.llm.sources.assigned import COMPATIBLE
    from holdfast.planes.llm.sources.provider_hosts import HOSTS

    provider, _, called = model.partition("/")
    if provider not in HOSTS or not called:
        raise UsageError(f"--model {model!r} is not PROVIDER/NAME", hint=f"providers: {', '.join(HOSTS)}")
    if not recipe.speaks:
        raise UsageError(f"--model: {name} asks no model")
    able = [known for known in HOSTS if known == recipe.speaks or known in COMPATIBLE]
    if provider not in able:
        message = f"--model {model}: {name} asks in the format of {recipe.speaks}, which {provider} does not speak"
        raise UsageError(message, hint=f"providers that can answer it: {', '.join(able)}")
    key = "" if provider == "ollama" else f', api_key: "${{{HOSTS[provider].key_variables[0][0]}}}"'
    return f'models:\n  "*": {{provider: {provider}, name: "{called}"{key}}}\n'


def next_steps(name: str, model: str | None, change: str) -> str:
    """What is missing on this machine, and what to type."""
    from holdfast.starter.recipe import found_version

    recipe = read_recipe(name)
    found = found_version(recipe)
    lines = [fill(f"note: {recipe.note}", 100, subsequent_indent="  ")] if recipe.note else []
    if found and found != recipe.version:
        lines.append(f"note: {recipe.package} {found} is here, and {recipe.version} was tried ({recipe.tried})")
    lines.append("Next:")
    if found is None:
        where = "beside Holdfast" if not recipe.program else f"({recipe.program} is not on the PATH)"
        lines.append(f"  {recipe.install}     # it is not installed {where}")
    if model is not None and not model.startswith("ollama/"):
        lines.append("  set the key that models: in holdfast.yaml names")
    return "\n".join([*lines, f"  {change}{recipe.run}"])
