"""holdfast shell: the services of a kept world are there again, as the agent left them, and nothing stays behind."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

import pytest
import yaml
from world_runs import ran, spec_of

from holdfast.world.kept_world import WorldKeeper, read_kept_world

HOLDFAST = [sys.executable, "-c", "import sys; from holdfast.cli import main; sys.exit(main())"]
PSQL = ["psql", "-h", "db", "-U", "app", "-d", "app", "-Atc"]
MARIADB = ["mariadb", "--skip-ssl", "-h", "shop", "-u", "seller", "-pshopping-1", "-Ne"]
REDIS = ["redis-cli", "-h", "cache", "-a", "from-a-command", "--no-auth-warning"]
AGENT = """
psql -qc "INSERT INTO t (who) VALUES ('bob'), ('$TOKEN')" $DATABASE_URL
psql -qc "CREATE DATABASE other" $DATABASE_URL
mariadb --skip-ssl -h shop -u seller -pshopping-1 -e "INSERT INTO shop.t (who) VALUES ('eve')"
redis-cli -h cache -a $PW --no-auth-warning rpush list one two $TOKEN
curl -s $MAIL_URL/sent -d hi
echo done
"""
SPEC = spec_of(
    AGENT,
    secrets=[
        {"name": "TOKEN", "from": "static://sesame-sesame", "scope": {"env": True, "file": "keys/token"}},
        {"name": "PW", "source": "command:echo from-a-command"},
    ],
    services=[
        {
            "name": "mail",
            "type": "http_mock",
            "record": True,
            "routes": [{"path": "/hello", "response": "hi there"}],
        },
        {
            "name": "db",
            "image": "postgres:15",
            "env": {"POSTGRES_USER": "app", "POSTGRES_PASSWORD": "{{ secrets.PW }}"},
        },
        {
            "name": "shop",
            "image": "mariadb:10",
            "env": {"MYSQL_DATABASE": "shop", "MYSQL_USER": "seller", "MYSQL_PASSWORD": "shopping-1"},
        },
        {"name": "cache", "image": "redis:7", "env": {"REDIS_PASSWORD": "{{ secrets.PW }}"}},
    ],
    fixtures=[
        {
            "type": "sql",
            "service": "db",
            "sql": "CREATE TABLE t (id serial PRIMARY KEY, who text); INSERT INTO t (who) VALUES ('ada')",
        },
        {
            "type": "sql",
            "service": "shop",
            "sql": "CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, who text); INSERT INTO t (who) VALUES ('ada')",
        },
    ],
    invariants={"made": {"description": "it is made", "check": {"type": "file_exists", "path": "nothing.txt"}}},
)


def holdfast(folder, *words, given=""):
    return subprocess.run([*HOLDFAST, *words], cwd=folder, input=given, capture_output=True, text=True, timeout=120)


def kept_by(folder, spec, code=1):
    """Runs a spec that fails, and keeps its world."""
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    done = holdfast(folder, "run", "-c", "spec.yaml", "--keep", "--no-preflight")
    if "no sandbox can be created" in done.stderr and os.environ.get("CI") != "true":
        pytest.skip(f"no sandbox can be created here: {done.stderr}")
    assert done.returncode == code, done.stdout + done.stderr
    assert "holdfast shell" in done.stdout
    return folder


def kept(project):
    (folder,) = (project / ".holdfast" / "kept").iterdir()
    return folder


def shell(project, *words, said=""):
    """One command in the kept world; what it prints."""
    done = holdfast(project, "shell", kept(project).name, "--", *words)
    assert (done.returncode, done.stderr) == (0, said), done.stdout
    return done.stdout.strip()


def digests(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return kept_by(tmp_path_factory.mktemp("services"), SPEC)


def test_postgres_has_its_rows_its_sequences_and_its_databases(project):
    asked = "; ".join(
        (
            "SELECT * FROM t ORDER BY id",
            "SELECT datname FROM pg_database WHERE datname = 'other'",
            "SELECT rolsuper FROM pg_roles WHERE rolname = 'app'",
            "INSERT INTO t (who) VALUES ('new') RETURNING id",
        )
    )
    said = shell(project, "env", "PGPASSWORD=from-a-command", *PSQL, asked).split("\n")
    assert said[:6] == ["1|ada", "2|bob", "3|[masked]*****", "other", "f", "4"]
    assert shell(project, "env", "PGPASSWORD=from-a-command", *PSQL, "SELECT count(*) FROM t") == "3"


def test_mariadb_has_its_rows(project):
    assert shell(project, *MARIADB, "SELECT who FROM shop.t ORDER BY id").split() == ["ada", "eve"]
    shell(project, *MARIADB, "DELETE FROM shop.t")
    assert shell(project, *MARIADB, "SELECT count(*) FROM shop.t") == "2"


def test_redis_has_its_keys(project):
    assert shell(project, *REDIS, "lrange", "list", "0", "-1").split() == ["one", "two", "[masked]*****"]


def test_a_mock_answers_again_and_its_requests_stay_as_they_were(project):
    script = "curl -s $MAIL_URL/hello; curl -s http://mail/other; cat /kept/services/mail.json"
    said = shell(project, "sh", "-c", script)
    assert said.startswith("hi there")
    assert [one["path"] for one in json.loads(said[said.index('{"requests"') :])["requests"]] == ["/sent"]


def test_the_environment_is_the_agents(project):
    script = "echo $TOKEN $PW $DATABASE_URL $SHOP_URL $DB_HOST:$DB_PORT; cat keys/token"
    said = shell(project, "sh", "-c", script).split()
    assert said[:3] == ["sesame-sesame", "from-a-command", "postgresql://app:from-a-command@db:5432/app"]
    assert said[3:] == ["mysql://seller:shopping-1@shop:3306/shop", "db:5432", "sesame-sesame"]


def test_the_exit_code_is_the_commands(project):
    assert holdfast(project, "shell", kept(project).name, "--", "sh", "-c", "exit 7").returncode == 7


def test_nothing_is_changed_and_no_secret_stays(project):
    before = digests(kept(project))
    assert {path.name for path in before} >= {"db.dump", "shop.dump", "cache.dump", "db.json"}
    shell(project, "sh", "-c", "echo x > made; rm -rf keys; PGPASSWORD=$PW psql -h db -U app -c 'DROP TABLE t'")
    assert digests(kept(project)) == before
    for path, data in before.items():
        assert b"sesame-sesame" not in data, path
        assert b"from-a-command" not in data, path
    assert oct(kept(project).stat().st_mode & 0o077) == "0o0"
    assert not read_kept_world(kept(project)).notes


@contextmanager
def looking(project):
    """A shell that is under way."""
    argv = [*HOLDFAST, "shell", kept(project).name, "--", "sh", "-c", "echo ready; sleep 60"]
    with subprocess.Popen(argv, cwd=project, stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"ready\n"
        assert mine(running.pid)
        yield running


def test_nothing_is_left_of_a_shell(project):
    with looking(project) as running:
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 2
    assert not mine(running.pid)


def test_what_a_killed_shell_leaves_is_found_by_clean(project):
    with looking(project) as running:
        running.kill()
    until = time.monotonic() + 30
    while mine(running.pid) and time.monotonic() < until:
        holdfast(project, "clean")
        time.sleep(0.2)
    assert not mine(running.pid)
    assert kept(project).is_dir()


def mine(pid):
    """The folders of a process of ours."""
    return [path for parent in (gettempdir(), "/dev/shm") for path in Path(parent).glob(f"holdfast-*-{pid}-*")]


def test_a_server_that_was_gone_is_told_and_the_rest_opens(tmp_path):
    spec = {
        **SPEC,
        "services": [SPEC["services"][0], SPEC["services"][3]],
        "fixtures": [],
        "agent": {"type": "command", "command": "redis-cli -h cache -a $PW --no-auth-warning shutdown; echo done"},
    }
    project = kept_by(tmp_path, spec)
    done = holdfast(project, "shell", kept(project).name, "--", "curl", "-s", "http://mail/hello")
    assert (done.returncode, done.stdout) == (0, "hi there")
    assert done.stderr.startswith("holdfast: service cache ")
    assert ": redis-cli failed" in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_its_run_the_workspace_opens_and_a_line_says_so(tmp_path):
    project = kept_by(tmp_path, spec_of("echo a > b; echo c", invariants=SPEC["invariants"]))
    (project / ".holdfast" / "runs" / "0001" / "run.json").unlink()
    done = holdfast(project, "shell", kept(project).name, "--", "cat", "b")
    assert (done.returncode, done.stdout) == (0, "a\n"), done.stderr
    assert ": run 0001 " in done.stderr


def test_an_external_service_is_reached_and_may_have_moved_on(tmp_path):
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Hello(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-length", "5")
            self.end_headers()
            self.wfile.write(b"still")

        def log_message(self, *words):
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Hello) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        spec = {**SPEC, "services": [{"name": "legacy", "type": "external", "url": url}], "fixtures": [], "secrets": []}
        project = kept_by(tmp_path, {**spec, "agent": {"type": "command", "command": "echo done"}})
        done = holdfast(project, "shell", kept(project).name, "--", "sh", "-c", "curl -s $LEGACY_URL")
        server.shutdown()
    assert (done.returncode, done.stdout) == (0, "still"), done.stderr
    assert done.stderr.startswith("holdfast: service legacy: ")


def test_only_trials_that_went_wrong_are_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = []

    async def keep(self, world, *rest):
        asked.append(world.environ["PARAM_WAY"])

    monkeypatch.setattr(WorldKeeper, "keep", keep)
    rule = {"description": "it is made", "check": {"type": "file_exists", "path": "made"}}
    agent = "test $PARAM_WAY = right && echo x > made; echo done"
    matrix = {"matrix": {"way": ["right", "wrong"]}}
    found = ran(tmp_path, spec_of(agent, parallelism=matrix, invariants={"made": rule}), keep=True)
    assert sorted(case.status for case in found.cases) == ["fail", "pass"]
    assert asked == ["wrong"]


def test_no_secret_is_left_of_one_that_came_by_reference(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_KEY", "hunter2-and-the-rest")
    agent = """head -c 1200000 /dev/zero | tr '\\0' x > large; echo hunter2-and-the-rest >> large
redis-cli -h cache set key hunter2-and-the-rest; redis-cli -h cache set pin 7; echo done"""
    services = [{"name": "cache", "image": "redis:7"}]
    spec = spec_of(agent, services=services, invariants=SPEC["invariants"])
    spec["agent"]["env"] = {"KEY": "${SHOP_KEY}"}
    project = kept_by(tmp_path, spec)
    assert not read_kept_world(kept(project)).notes
    assert not [path for path, data in digests(kept(project)).items() if b"and-the-rest" in data]
    assert shell(project, "redis-cli", "-h", "cache", "mget", "key", "pin").split() == ["[masked]************", "7"]
