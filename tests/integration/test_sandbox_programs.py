"""Programs where package managers put them run in a real sandbox: and nothing beside them is seen there."""

import os
import shutil
import sys
import textwrap
from pathlib import Path

import pytest
from world_runs import BACKENDS, HOLDS, ran, spec_of

import holdfast

NODE = shutil.which("node", path="/usr/bin:/usr/local/bin")
INSTALLED = Path(__file__).parents[2] / ".venv/node/node_modules"
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
SAYS = "import os, sys\nprint('ran', sys.prefix, os.environ['HOME'])\n"
CLI = "#!/usr/bin/env node\nconst word = require('helper');\nconsole.log('ran', word, process.execPath);\n"


def program(path, text, mode=0o755):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def home(tmp_path):
    """The home of a user, which nobody else may enter, with credentials in it."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    for name in (".netrc", ".local/share/keyrings/login", ".local/bin/other", ".nvm/token", ".npmrc"):
        program(home / name, "SECRET", 0o644)
    return home


@pytest.fixture
def at(tmp_path):
    (tmp_path / "spec").mkdir()
    return tmp_path / "spec"


def environ(home, *folders):
    return {"HOME": str(home), "PATH": ":".join([*map(str, folders), "/usr/bin", "/bin"])}


def environment(folder):
    """A virtual environment as `python -m venv --without-pip` makes it, with a console script in it."""
    base = Path(sys.base_prefix) / "bin"
    (folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to(base / f"python{sys.version_info.major}.{sys.version_info.minor}")
    (folder / "pyvenv.cfg").write_text(f"home = {base}\ninclude-system-site-packages = false\n")
    return program(folder / "bin/bot", f"#!{folder}/bin/python\n{SAYS}")


@BACKENDS
@pytest.mark.parametrize("where", [".local/share/pipx/venvs/bot-cli", ".local/share/uv/tools/bot-cli"])
def test_a_tool_of_pipx_or_uv(home, at, where, backend):
    script = environment(home / where)
    (home / ".local/bin/bot").symlink_to(script)
    found = ran(at, spec_of("bot"), environ=environ(home, home / ".local/bin"), backend=backend)
    assert (found.only.ending, found.text.split()[:2]) == ("answered", ["ran", str(home / where)]), found.only
    if backend == "bubblewrap":
        assert found.text.split()[2] == "/home/agent"
        assert any(str(home / where) in note for note in found.notes)


@pytest.mark.parametrize(
    "command",
    [
        "bot",
        "env -u Y X=1 bot",
        "cd . && bot",
        "python bot.py",
        "~/venv/bin/bot",
        "exec {home}/venv/bin/bot",
        "true|bot",
    ],
)
def test_an_environment_of_the_user_however_it_is_named(home, at, command):
    environment(home / "venv")
    spec = spec_of(command.replace("{home}", str(home)))
    found = ran(at, spec, environ=environ(home, home / "venv/bin"), files={"bot.py": SAYS})
    assert found.text.split()[:2] == ["ran", str(home / "venv")], found.only


def test_an_environment_beside_the_spec(home, at):
    environment(at / ".venv")
    for command in (".venv/bin/bot", ".venv/bin/python bot.py"):
        found = ran(at, spec_of(f"{command}; ls {at}"), environ=environ(home), files={"bot.py": SAYS})
        assert found.lines == [f"ran {at / '.venv'} /home/agent"], found.only


def test_a_python_of_pyenv_is_found_behind_its_shim(home, at, monkeypatch):
    monkeypatch.delenv("PYENV_VERSION", raising=False)  # of a shim that these tests were started through
    prefix = environment(home / ".pyenv/versions/bots").parents[1]
    program(home / ".pyenv/shims/bot", "#!/usr/bin/env bash\nexec pyenv exec bot\n")
    (home / ".pyenv/version").write_text("bots\n")
    found = ran(at, spec_of("bot"), environ=environ(home, home / ".pyenv/shims"))
    assert found.text.split()[:2] == ["ran", str(prefix)], found.only


def test_packages_of_pip_install_user(home, at):
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    program(home / ".local/lib" / version / "site-packages/botlib.py", "WORD = 'whole'", 0o644)
    program(home / ".local/bin/bot", f"#!{sys.executable}\nimport sys, site\nprint(site.USER_BASE)\n")
    found = ran(at, spec_of("bot"), environ=environ(home, home / ".local/bin"))
    assert found.text == str(home / ".local"), found.only


@needs_node
@pytest.mark.parametrize("prefix", [".nvm/versions/node/v20.1.0", ".npm-global"])
def test_a_package_of_npm(home, at, prefix):
    modules = home / prefix / "lib/node_modules"
    program(modules / "@maker/bot/cli.js", CLI)
    program(modules / "@maker/bot/package.json", '{"name": "@maker/bot"}', 0o644)
    program(modules / "@maker/bot/node_modules/helper/index.js", "module.exports = 'whole'", 0o644)
    (home / prefix / "bin").mkdir()
    (home / prefix / "bin/bot").symlink_to("../lib/node_modules/@maker/bot/cli.js")
    shutil.copy(NODE, home / ".nvm/node") if "nvm" not in prefix else shutil.copy(NODE, home / prefix / "bin/node")
    folders = [home / prefix / "bin", home / ".nvm"]
    found = ran(at, spec_of("bot"), environ=environ(home, *folders))
    node = home / (".nvm/node" if "nvm" not in prefix else f"{prefix}/bin/node")
    assert found.text == f"ran whole {node}", found.only


@needs_node
@pytest.mark.parametrize(
    ("shim", "start", "links", "package"),
    [
        ("shim", '"$basedir/global/5/node_modules/bot/cli.js"', {"global/5/node_modules/bot": "../.pnpm/{package}"}, 5),
        ("shim", '"$basedir/global/5/.pnpm/{package}/cli.js"', {}, 5),
        (
            "bin/shim",
            "\"$basedir_abs\"/'../global/v11/abc/node_modules/bot/cli.js'",
            {"global/v11/abc": "1-2", "global/v11/1-2/node_modules/bot": "../../../../store/v11/links/@/{package}"},
            11,
        ),
    ],
    ids=["pnpm 9", "pnpm 10", "pnpm 12"],
)
def test_a_program_of_pnpm(home, at, shim, start, links, package):
    """As `pnpm add -g` of these versions leaves it: a script, links to the package, and from it to its neighbours."""
    top = home / ".local/share/pnpm"
    kept = {5: "global/5/.pnpm", 11: "store/v11/links/@"}[package]
    program(top / kept / "bot@1/node_modules/bot/cli.js", CLI)
    program(top / kept / "helper@2/node_modules/helper/index.js", "module.exports = 'whole'", 0o644)
    (top / kept / "bot@1/node_modules/helper").symlink_to("../../helper@2/node_modules/helper")
    for link, leads in links.items():
        (top / link).parent.mkdir(parents=True, exist_ok=True)
        (top / link).symlink_to(leads.replace("{package}", "bot@1/node_modules/bot"))
    start = start.replace("{package}", "bot@1/node_modules/bot")
    own = 'basedir=$(dirname "$0")\nbasedir_abs=$(cd "$basedir" && pwd -P)\n'
    text = (
        f'if [ -x "$basedir/node" ]; then\n  exec "$basedir/node"  {start} "$@"\nelse\n  exec node  {start} "$@"\nfi\n'
    )
    program((top / shim).with_name("bot"), f"#!/bin/sh\n{own}{text}")
    program(top / "global/token", "SECRET", 0o644)
    look = f"bot && cat {home}/.npmrc {top}/global/token"
    found = ran(at, spec_of(look), environ=environ(home, (top / shim).parent))
    assert found.text == f"ran whole {os.path.realpath(NODE)}", found.only
    assert found.only.output.count("No such file") == 2


MANAGERS = {
    "mise": (".local/share/mise/shims", "link", "installs/npm-bot/1.0"),
    "volta": (".volta/bin", "link", "tools/image/packages/bot"),
    "asdf": (".asdf/shims", "script", "installs/nodejs/20.1.0"),
}


@needs_node
@pytest.mark.parametrize("manager", MANAGERS)
def test_a_program_behind_the_shim_of_a_version_manager(home, at, manager):
    """The manager itself is a stand-in: it answers `which` as the real one does."""
    folder, kind, install = MANAGERS[manager]
    shims = home / folder
    prefix = shims.parent / install
    modules = prefix / "lib/node_modules"
    program(modules / "bot/cli.js", CLI)
    program(modules / "bot/node_modules/helper/index.js", "module.exports = 'whole'", 0o644)
    (prefix / "bin").mkdir()
    (prefix / "bin/bot").symlink_to("../lib/node_modules/bot/cli.js")
    tools = home / "tools"
    asked = f'#!/bin/sh\n[ "$*" = "which bot" ] && [ "$PWD" = {at} ] && echo {prefix}/bin/bot\n'
    program(tools / manager, asked)
    if kind == "link":
        target = tools / {"volta": "volta-shim"}.get(manager, manager)
        target.exists() or program(target, "#!/bin/sh\nexit 9\n")
        shims.mkdir(parents=True)
        (shims / "bot").symlink_to(target)
    else:
        program(shims / "bot", '#!/usr/bin/env bash\n# asdf-plugin: nodejs 20.1.0\nexec asdf exec "bot" "$@"\n')
    found = ran(at, spec_of("bot"), environ=environ(home, shims, tools))
    assert found.text == f"ran whole {os.path.realpath(NODE)}", found.only
    assert str(modules) in " ".join(found.notes)


@needs_node
@pytest.mark.skipif(not INSTALLED.is_dir(), reason="tests/node is not installed: make dev")
def test_a_real_package_of_npm(home, at):
    program_name = "mcp-server-filesystem"
    target = home / "tools/node_modules"
    target.parent.mkdir()
    shutil.copytree(INSTALLED, target, symlinks=True, copy_function=os.link)
    found = ran(at, spec_of(f"{program_name} . < /dev/null"), environ=environ(home, target / ".bin"))
    assert "MCP Filesystem Server" in found.only.output, found.only


def test_what_an_environment_reads_elsewhere_is_told(home, at):
    script = environment(home / "venv")
    (home / "dev/src").mkdir(parents=True)
    ours = Path(holdfast.__file__).parents[1]
    added = next((home / "venv/lib").iterdir()) / "site-packages/bot.pth"
    added.write_text(f"{home}/dev/src\nimport sys\n{ours}\n")
    found = ran(at, spec_of(f"{script} && ls {home}"), environ=environ(home))
    assert found.lines[1:] == ["venv"], found.only
    assert any(note.startswith(f"{home}/dev/src ") and f"agent.dir: {home}/dev/src" in note for note in found.notes)
    assert not [
        note for note in found.notes if note.startswith(f"{ours} ")
    ]  # Holdfast's own, as `make install` leaves it


def test_nothing_beside_a_program_is_seen(home, at):
    script = environment(home / ".local/share/pipx/venvs/bot")
    (home / ".local/bin/bot").symlink_to(script)
    look = f"bot; cd {home}; find . -type f -not -path './.local/share/pipx/venvs/*'; ls -A . .local .local/bin"
    found = ran(at, spec_of(look), environ=environ(home, home / ".local/bin"))
    assert found.lines[1:] == [".:", ".local", "", ".local:", "bin", "share", "", ".local/bin:", "bot"], found.only


def test_a_program_in_the_home_itself_shows_no_more_than_itself(home, at):
    program(home / "package.json", "{}", 0o644)
    program(home / "bin/bot", "#!/bin/sh\necho ran; ls " + str(home) + "\n")
    found = ran(at, spec_of("bot"), environ=environ(home, home / "bin"))
    assert found.lines == ["ran", "bin"], found.only


def test_what_is_shown_cannot_be_written(home, at):
    script = environment(home / "venv")
    found = ran(at, spec_of(f"bot && echo more >> {script}"), environ=environ(home, home / "venv/bin"))
    assert found.only.ending == "crashed"
    assert "Read-only file system" in found.only.output
    assert "more" not in script.read_text()


def test_a_folder_of_the_agents_may_be_anywhere(home, at):
    program(home / "bots/lib.sh", "echo ran in $(pwd)\n", 0o644)
    program(home / "bots/run.sh", f"#!/bin/sh\n. {home}/bots/lib.sh; ls {home}\n")
    agent = {"type": "command", "command": "sh run.sh", "dir": str(home / "bots")}
    found = ran(at, spec_of(agent), environ=environ(home))
    assert found.lines == ["ran in /workspace", "bots"], found.only
    assert f"the agent sees {home / 'bots'}, read-only" in found.notes


def test_programs_of_setup_and_checks_are_found_like_the_agents_own(home, at):
    program(home / "tools/checker", "#!/bin/sh\ntest -f made\n")
    program(home / "tools/maker", "#!/bin/sh\ntouch made\n")
    program(home / "tools/other", "#!/bin/sh\n")
    checks = {"made": {"description": "d", "check": {"type": "command_exit", "command": "cd . && checker"}}}
    looks = {"type": "command", "command": 'echo "other: $(command -v other)"'}
    spec = spec_of(looks, setup={"commands": ["X=1 maker"]}, invariants=HOLDS | checks)
    found = ran(at, spec, environ=environ(home, home / "tools"))
    assert [one.outcome for one in found.verdicts] == ["pass", "pass"], found.only
    assert found.text.strip() == "other:"
    asks = ran(at, {**spec, "agent": {**looks, "programs": ["other"]}}, environ=environ(home, home / "tools"))
    assert asks.text == f"other: {home}/tools/other"


def test_an_activated_environment_is_seen_though_nothing_names_it(home, at):
    environment(home / "venv")
    command = "python -c 'import sys; print(sys.prefix)'; command -v bot"
    activated = environ(home, home / "venv/bin") | {"VIRTUAL_ENV": str(home / "venv")}
    spec = spec_of('sh -c "$SCRIPT"', setup={"env": {"SCRIPT": command}})
    assert ran(at, spec, environ=activated).lines == [str(home / "venv"), f"{home}/venv/bin/bot"]


def test_a_server_finds_the_modules_of_its_folder_and_says_what_it_sees_without_one(home, at):
    """As `uvicorn app:app` does: the program is elsewhere, and imports a module by its name."""
    serve = """
        import http.server, importlib, os, sys
        app = importlib.import_module(sys.argv[1].partition(":")[0])
        class Desk(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(app.ANSWER.encode())
        http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Desk).serve_forever()
    """
    program(home / "bin/serve", f"#!/usr/bin/env -S python3 -P\n{textwrap.dedent(serve)}")
    agent = {"type": "http", "command": "serve app:app", "endpoint": "http://127.0.0.1:{port}/"}
    files = {"desk/app.py": "import texts\nANSWER = texts.ANSWER\n", "desk/texts.py": "ANSWER = 'from texts'\n"}
    without = ran(at, spec_of(agent), environ=environ(home, home / "bin"), files=files)
    assert "ModuleNotFoundError: " in without.only.error
    assert "agent.dir" in without.only.error
    for folder in ("./desk", str(at / "desk")):
        found = ran(at, spec_of({**agent, "dir": folder}), environ=environ(home, home / "bin"))
        assert found.text == "from texts", found.only


def test_a_program_that_is_nowhere_names_what_the_sandbox_sees(home, at):
    found = ran(at, spec_of("claude -p hello"), environ=environ(home))
    assert "not found" in found.only.error
    assert "npm install -g @anthropic-ai/claude-code" in found.only.error
    assert "PATH is " in found.only.error
    assert "/workspace" in found.only.error


# Not part of tests/setup.sh: these two are left out, not skipped, where the machine has no Java or no rustup.
if os.path.exists("/usr/bin/java"):

    def test_java_of_the_distribution(at):
        # On Debian, links in the JDK lead to its settings in /etc/java-17-openjdk.
        found = ran(
            at, spec_of("echo 'class A { public static void main(String[] a) {} }' > A.java; java A.java && echo ran")
        )
        assert found.text.split()[-1:] == ["ran"], found.only


if os.path.islink(shutil.which("cargo") or ""):

    def test_rust_of_rustup(at):
        program = 'fn main() { println!("ran"); }'
        found = ran(at, spec_of(f"cargo --version >&2; echo '{program}' > a.rs && rustc a.rs && ./a"))
        assert found.text == "ran", found.only
