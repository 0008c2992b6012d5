"""Any image as a service, against a real engine: `tests/docker/engine.sh pytest tests/docker/docker_services.py`."""

import asyncio
import glob
import os
import re
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from docker_kit import PROGRAMS, containers, import_image, make_image, programs

from holdfast.errors import HarnessError, UserError
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import Database, MultiPortService
from holdfast.world.services import open_keeper
from holdfast.world.services.container import keeper as container_keeper
from holdfast.world.services.container.keeper import KEEPER
from holdfast.world.supervisors import container_owner as owner

TRIAL = Trial("abcdefabcdef", "contract", Scenario("calm"), Task(("x",)))
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def image(tmp_path_factory):
    """One static program and nothing else."""
    program = tmp_path_factory.mktemp("image") / "server"
    subprocess.run(["cc", "-static", "-O1", "-o", program, HERE / "server.c"], check=True)
    name = "holdfast-server:1"
    return import_image(name, [program], change=[f'ENTRYPOINT ["{program}"]'])


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path):
    yield
    assert containers() == []
    assert [*tmp_path.iterdir()] == []


@asynccontextmanager
async def served(spec, folder):
    keeper = await open_keeper(spec, folder, docker=True)
    try:
        service = await keeper.provide(TRIAL, alone=True)
        try:
            yield service
        finally:
            await service.close()
    finally:
        await keeper.close()


async def heard(path):
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()


def test_an_image_serves_on_its_ports(image, tmp_path):
    async def scene():
        says = {"SAYS": "a=b #c", "PATH": "/nowhere"}
        async with served(ServiceSpec("one", "container", image, says, (8080, 9090)), tmp_path) as service:
            assert isinstance(service, MultiPortService)
            assert not isinstance(service, Database)
            assert await heard(service.upstream) == "8080 a=b #c"
            assert await heard(service.upstream_of(9090)) == "9090 a=b #c"
            assert os.stat(service.upstream).st_mode & 0o777 == 0o600
            assert re.match(f"service one: {image} .* sha256:", service.notes[0])

    asyncio.run(scene())


def test_a_value_of_several_lines_arrives_and_none_is_on_the_command_line(image, tmp_path):
    async def scene():
        spec = ServiceSpec("one", "container", image, {"SAYS": "hush\nhush"}, (8080,))
        async with served(spec, tmp_path) as service:
            return await heard(service.upstream)

    assert asyncio.run(scene()) == "8080 hush\nhush"


def test_it_has_no_network_but_its_own(image, tmp_path):
    async def scene():
        async with served(ServiceSpec("one", "container", image, {}, (8080,)), tmp_path):
            form = "{{.HostConfig.NetworkMode}} {{.NetworkSettings.Ports}}"
            inspect = ["docker", "inspect", "--format", form, *containers()]
            return subprocess.run(inspect, capture_output=True, text=True, check=True).stdout.splitlines()

    modes = asyncio.run(scene())
    assert {mode.partition(":")[0] for mode in modes} == {"none map[]", "container"}


def test_every_trial_has_its_own(image, tmp_path):
    async def scene():
        spec = ServiceSpec("one", "container", image, {}, (8080,))
        keeper = await open_keeper(spec, tmp_path, docker=True)
        try:
            for trial in (TRIAL, TRIAL):
                service = await keeper.provide(trial, alone=True)
                yield service.upstream
                await service.close()
        finally:
            await keeper.close()

    async def seen():
        return [upstream async for upstream in scene()]

    assert len({*asyncio.run(seen())}) == 2


def test_one_that_ends_tells_its_log(image, tmp_path):
    spec = ServiceSpec("one", "container", image, {"FAILS": "expired"}, (8080,))
    with pytest.raises(HarnessError, match="code 3 ") as told:
        asyncio.run(_serve(spec, tmp_path))
    assert "no licence: expired" in str(told.value)


def test_one_that_never_listens_is_told(image, tmp_path, monkeypatch):
    monkeypatch.setattr(container_keeper, "LIMIT_S", 2.0)
    with pytest.raises(HarnessError, match=" port 81 "):
        asyncio.run(_serve(ServiceSpec("one", "container", image, {}, (81,)), tmp_path))


def test_a_missing_image_is_told_with_the_line_that_gets_it(tmp_path):
    with pytest.raises(UserError, match="no-such-image:1 is not here") as told:
        asyncio.run(_serve(ServiceSpec("one", "container", "no-such-image:1"), tmp_path))
    assert told.value.hint == "docker pull no-such-image:1"


def test_wait_for_runs_inside(tmp_path):
    handler = "http.server.SimpleHTTPRequestHandler"
    script = f"import http.server; open('/tmp/began', 'w'); http.server.test({handler}, port=80)"
    name = "holdfast-waits:1"
    subprocess.run(["docker", "build", "-q", "-t", name, "-"], check=True, capture_output=True, text=True,
                   env={**os.environ, "DOCKER_BUILDKIT": "0"},
                   input=f'FROM {make_image()}\nCMD ["{sys.executable}", "-c", "{script}"]\n')  # fmt: skip

    async def scene():
        good = ServiceSpec("web", "container", name, {"WORD": "yes"}, (), "test -f /tmp/began && test $WORD = yes")
        async with served(good, tmp_path) as service:
            return await heard_http(service.upstream)

    assert "200 OK" in asyncio.run(scene())


def test_a_wait_for_without_a_shell_is_told_at_once(image, tmp_path):
    began = time.monotonic()
    with pytest.raises(HarnessError, match=" sh in the image"):
        asyncio.run(_serve(ServiceSpec("one", "container", image, {}, (8080,), "true"), tmp_path))
    assert time.monotonic() - began < 30


def test_postgres_is_a_container_where_no_server_is(tmp_path, tmp_path_factory, monkeypatch):
    name = postgres_image(tmp_path_factory.mktemp("image"))
    monkeypatch.setattr("holdfast.world.services.postgres.server.PLACES", ())
    env = {"POSTGRES_PASSWORD": "hush-hush", "POSTGRES_DB": "shop", "POSTGRES_INITDB_WALDIR": "/tmp/wal"}

    async def scene():
        async with served(ServiceSpec("db", "postgres", name, env, (), "true"), tmp_path) as db:
            assert isinstance(db, Database)
            assert db.variables == {"URL": "postgresql://postgres:hush-hush@{host}:{port}/shop"}
            await db.execute("create table t (n int); insert into t values (1)")
            await db.mark()
            await db.execute("insert into t values (2), (3)")
            rows = await db.query("select count(*) from t", timeout_s=10)
            return rows.rows, [event.details for event in await db.writes()]

    rows, writes = asyncio.run(scene())
    assert rows == ((3,),)
    assert [(one["table"], one["op"], one["rows"]) for one in writes] == [("t", "insert", 2)]


def test_a_server_of_this_machine_comes_first(tmp_path):
    async def scene():
        async with served(ServiceSpec("db", "redis", "redis:7"), tmp_path) as service:
            assert containers() == []
            return service.notes[0]

    assert "redis:7 is served by" in asyncio.run(scene())


@pytest.mark.parametrize("after_s", [0.0, 0.15, 0.3, 0.5, 0.8, 1.2, 3.0])
def test_a_killed_run_leaves_no_container(after_s, image, tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    with subprocess.Popen([sys.executable, "-c", KILLED, image, folder], stdout=subprocess.PIPE, env=ENV) as running:
        assert running.stdout.readline() == b"begun\n"
        time.sleep(after_s)
        running.kill()
    until = time.monotonic() + 20
    while (containers() or shells()) and time.monotonic() < until:
        time.sleep(0.1)
    assert containers() == []
    assert shells() == []


def test_what_nobody_removed_is_swept(image):
    ended = subprocess.Popen(["true"])
    ended.wait()
    host, boot, space, _, began = owner.identify_owner().split("/")
    dead = "/".join((host, boot, space, str(ended.pid), began))
    for label, name in ((dead, "left"), (owner.identify_owner(), "ours")):
        label = f"{owner.LABEL}={label}"
        command = ["docker", "create", "--network", "none", "--label", label, "--name", name, image]
        subprocess.run(command, check=True, capture_output=True)
    try:
        assert owner.sweep() == ["left"]
        assert len(containers()) == 1
    finally:
        subprocess.run(["docker", "rm", "-f", "ours"], check=True, capture_output=True)
    assert owner.sweep() == []


def test_a_whole_run_with_an_agent_that_uses_both_ports(image, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "agent.py").write_text(AGENT)
    (folder / "spec.yaml").write_text(RUN.format(base=make_image(), image=image, python=sys.executable))
    command = [Path(sys.executable).with_name("holdfast"), "run", "-c", "spec.yaml", "--backend", "docker", "--json"]
    ran = subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " of sha256:" in ran.stdout
    assert shells() == []


# -- parts --------------------------------------------------------------------------------------
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
KILLED = """
import asyncio, sys
from pathlib import Path
from holdfast.model.world import ServiceSpec
from holdfast.world.services import open_keeper
async def run():
    spec = ServiceSpec("one", "container", sys.argv[1], {}, (8080,))
    keeper = await open_keeper(spec, Path(sys.argv[2]), docker=True)
    print("begun", flush=True)
    await asyncio.sleep(600)
asyncio.run(run())
"""


AGENT = """
import os, socket
told = []
named = os.environ["ONE_HOST"], int(os.environ["ONE_PORT"])
for host, port in (("one", 8080), ("one.services.internal", 9090), named):
    with socket.create_connection((host, port)) as way:
        told.append(way.makefile().read())
print(*told, sep=";")
with socket.socket() as way:
    way.settimeout(5)
    print("closed" if way.connect_ex(("192.0.2.1", 8080)) else "open")
"""
RUN = """
version: 1
id: uses-an-image
base: "{base}"
task: {{prompt: "Ask it."}}
agent: {{type: command, command: "{python} agent.py"}}
services:
  - {{name: one, image: "{image}", ports: [8080, 9090], env: {{SAYS: hello}}}}
invariants:
  asked:
    description: "All ports answer"
    check: {{type: contains, value: "8080 hello;9090 hello;8080 hello"}}
  closed:
    description: "Nothing else does"
    check: {{type: contains, value: "closed"}}
"""


def shells():
    """Processes that wait for somebody's end."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = Path(path).read_bytes().split(b"\0")
        except OSError:
            continue
        found += [path] if any(word.startswith(KEEPER.encode() + b"=") for word in words) else []
    return found


async def _serve(spec, folder):
    async with served(spec, folder):
        raise AssertionError("it was not to start")


async def heard_http(path):
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()


def postgres_image(folder):
    """What the official image does, with the server of this machine."""
    home = max(Path("/usr/lib/postgresql").glob("*/bin"))
    share = Path("/usr/share/postgresql") / home.parent.name
    begin = folder / "begin"
    begin.write_text(
        f"""#!/bin/sh -e
{home}/initdb -D /tmp/data -X "$POSTGRES_INITDB_WALDIR" -U postgres -A trust --no-sync
echo 'host all all all trust' >> /tmp/data/pg_hba.conf
echo "create database $POSTGRES_DB" | {home}/postgres --single -D /tmp/data postgres
exec {home}/postgres -D /tmp/data -k /tmp -c listen_addresses='*'
"""
    )
    begin.chmod(0o755)
    found = [*programs(*PROGRAMS), Path("/etc/passwd"), begin]
    change = [f'CMD ["{begin}"]', "USER 65534"]
    extensions = [home / "postgres", home / "initdb", *(home.parent / "lib").glob("*.so")]
    folders = [home, home.parent / "lib", share]
    return import_image("holdfast-db:15", found, extensions, folders, {"/bin": "/usr/bin"}, change)
