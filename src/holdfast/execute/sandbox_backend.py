"""The sandbox backend of a site, and what every sandbox sees of this machine."""

from __future__ import annotations

import site as python_site
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from holdfast import plugins
from holdfast.errors import UserError
from holdfast.model.codes import RunNote
from holdfast.model.spec import AgentSpec, Spec
from holdfast.plan.checks import get_traits
from holdfast.protocols.sandbox import SandboxBackend
from holdfast.reading.program_word import find_program_calls
from holdfast.world.program_search import ProgramSearch, make_search
from holdfast.world.sandbox.system import select_mounts

OWN = Path(sys.executable).parent
"""The folder of Holdfast's own programs."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def list_interpreter_paths() -> dict[str, Path]:
    """Return the folders of this Python and of Holdfast, for Python agents and MCP relays."""
    packages = [*python_site.getsitepackages(), str(Path(plugins.__file__).parents[1])]
    return select_mounts([sys.prefix, sys.base_prefix, *packages], without=("/usr",))


def build_environ(folders: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables of every program in a world; `folders` come first in its search path."""
    usual = [str(OWN), *PATH.split(":")]
    return {"PATH": ":".join([*[folder for folder in folders if folder not in usual], *usual])}


def make_program_search(spec: Spec, agent: AgentSpec, root: Path, environ: Mapping[str, str]) -> ProgramSearch:
    """Make the search for the programs of an agent's section on this machine."""
    setup = {} if spec.world is None else spec.world.setup.env
    others = () if spec.world is None else tuple(dict.fromkeys(_list_other_programs(spec)))
    return make_search(environ, root, OWN, {**setup, **agent.env}.get("PATH"), others)


def _list_other_programs(spec: Spec) -> Iterator[str]:
    """Yield the programs that the setup and the checks of a spec run."""
    assert spec.world is not None
    for command in spec.world.setup.commands:
        yield from (call.program for call in find_program_calls(command))
    for rule in spec.invariants:
        yield from get_traits(rule).programs


async def open_backend(name: str, folder: Path, image: str | None) -> SandboxBackend:
    """Return the backend of that name, tested on this machine; raise UserError if it does not exist or work here."""
    return await find_backend(name).open_backend(folder, image)


def find_backend(name: str) -> type[SandboxBackend]:
    """Return the backend of that name; raise UserError if there is none."""
    plugin: type[SandboxBackend] | None = plugins.find("sandboxes", name)
    if plugin is None:
        raise UserError(
            f"there is no sandbox backend {name!r}",
            code="sandbox-unavailable",
            hint=f"there are: {', '.join(plugins.list_names('sandboxes'))}",
        )
    return plugin


def make_sandbox_note(backend: SandboxBackend) -> RunNote:
    """Make the note that says how many sandbox features are enforced here, and which are not."""
    missing: dict[str, list[str]] = {}
    for one in backend.isolation:
        if not one.enforced:
            missing.setdefault(one.why, []).append(one.feature)
    enforced = sum(one.enforced for one in backend.isolation)
    text = f"sandbox {backend.name}: {enforced} of {len(backend.isolation)} kept"
    if missing:
        lacking = (f"{', '.join(features)} ({why})" for why, features in missing.items())
        text += f". Not enforced here: {'; '.join(lacking)}"
    return RunNote("sandbox", text, tuple(feature for features in missing.values() for feature in features))
