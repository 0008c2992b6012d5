"""What is in a real world before the agent comes: secrets, setup, fixtures, names and variables."""

import subprocess

import pytest
from world_runs import BACKENDS, ran, spec_of

SECRETS = [
    {"name": "API_TOKEN", "from": "static://sesame-sesame", "scope": {"env": True}},
    {"name": "KEY_FILE", "from": "generated", "scope": {"env": False, "file": "keys/key"}},
    {"name": "FROM_ENV", "source": "env:OTHER_NAME"},
    {"name": "FROM_FILE", "source": "file:secret.txt"},
]


@BACKENDS
def test_secrets_are_where_their_scope_says_and_masked_everywhere(tmp_path, backend):
    command = """
        echo "$API_TOKEN ${KEY_FILE:-unset} $FROM_ENV $FROM_FILE"; cat keys/key; stat -c %a keys/key
        echo "$API_TOKEN" >&2; echo "$API_TOKEN" > leaked-$API_TOKEN; curl -s "http://mail/$API_TOKEN" -d "$FROM_ENV"
    """
    services = [{"name": "mail", "type": "http_mock", "record": True}]
    if backend == "process":
        command = command.replace("http://mail", "$MAIL_URL")
    spec = spec_of(command, secrets=SECRETS, services=services)
    environ = {"OTHER_NAME": "from-the-environment"}
    found = ran(tmp_path, spec, environ=environ, files={"secret.txt": "from-the-file\n"}, backend=backend)
    assert found.text.splitlines()[:2] == ["[masked] unset [masked] [masked]", "[masked]600"]
    for path in found.folder.rglob("*"):  # the copy of the spec has what its author wrote there
        text = path.read_bytes() if path.is_file() and path.name != "spec.yaml" else b""
        for value in (b"sesame-sesame", b"from-the-environment", b"from-the-file", b"hf-"):
            assert value not in text, path
    assert found.audit("http_call")[0]["url"].endswith("/[masked]")


def test_setup_prepares_the_world_and_is_not_the_agents_doing(tmp_path):
    setup = {
        "env": {"GREETING": "hello"},
        "files": [
            {"path": "bin/tool", "content": "#!/bin/sh\necho tool $1\n", "mode": "0755"},
            {"path": "c", "source": "copied"},
        ],
        "commands": ["echo $GREETING > greeting.txt", "mkdir sub && cp greeting.txt sub/"],
    }
    found = ran(
        tmp_path, spec_of("bin/tool 1; cat c sub/greeting.txt; echo $GREETING", setup=setup), files={"copied": "c\n"}
    )
    assert found.lines == ["tool 1", "c", "hello", "hello"]
    assert [event["argv"][0] for event in found.audit("command")] == ["/bin/sh", "bin/tool", "cat"]
    assert found.audit("file_write") == []


@pytest.mark.parametrize(
    ("sections", "why"),
    [
        ({"setup": {"commands": ["true", "echo no >&2; exit 3"]}}, "setup.commands[1] exited with 3: no"),
        (
            {"setup": {"commands": ["echo 'Main.java:1: error' >&2; seq 1000 >&2; exit 1"]}},
            "setup.commands[0] exited with 1: Main.java:1: error 1 2 3",
        ),
        ({"fixtures": [{"type": "git_repo", "url": "./missing.git"}]}, "git clone of ./missing.git failed"),
        (
            {
                "services": [{"name": "db", "image": "postgres:16"}],
                "fixtures": [
                    {"type": "sql", "service": "db", "sql": "CREATE TABLE t (id int); INSERT INTO nowhere VALUES (1)"}
                ],
            },
            "fixtures[0] (sql) failed in db",
        ),
    ],
)
def test_what_cannot_be_prepared_is_an_error_with_its_cause(tmp_path, sections, why):
    found = ran(tmp_path, spec_of("echo hi", **sections))
    assert found.case.status == "error"
    assert why in found.only.error


def test_fixtures_are_laid_out_in_order(tmp_path):
    repo = tmp_path / "repo"
    repo.mkdir()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    (repo / "readme").write_text("from git\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], cwd=repo, check=True)
    fixtures = [
        {"type": "directory", "source": "data"},
        {"type": "files", "files": [{"path": "a.txt", "content": "second\n"}]},
        {"type": "git_repo", "url": "./repo", "path": "code", "depth": 1},
    ]
    command = "cat a.txt b.txt code/readme; cd code && git log --format=%s"
    found = ran(tmp_path, spec_of(command, fixtures=fixtures), files={"data/a.txt": "first\n", "data/b.txt": "b\n"})
    assert found.lines == ["second", "b", "from git", "one"]


def test_data_of_a_database_drifts_the_same_for_the_same_seed(tmp_path):
    table = "CREATE TABLE c (id int primary key, name text);"
    table += "INSERT INTO c SELECT n, 'name' || n FROM generate_series(1, 40) n"
    spec = spec_of(
        'psql -Atc "SELECT count(*), count(name) FROM c" $DATABASE_URL',
        services=[{"name": "db", "image": "postgres:16"}],
        fixtures=[
            {"type": "sql", "service": "db", "file": "seed.sql"},
            {"type": "drift", "service": "db", "table": "c", "rate": 0.2, "kinds": ["null"]},
        ],
        parallelism={"replicas": 1},
    )
    found = ran(tmp_path, spec, files={"seed.sql": table})
    assert found.text.strip() == "40|32", found.only.output


def test_services_have_names_and_variables(tmp_path):
    command = """
        getent hosts db db.services.internal mail-box mail-box.services.internal | awk '{print $1, $2}'
        echo $DB_HOST $DB_PORT $MAIL_BOX_HOST $MAIL_BOX_PORT $MAIL_BOX_URL
        echo $DATABASE_URL $REDIS_URL; psql -Atc 'SELECT 6 * 7' "$DATABASE_URL"
    """
    services = [
        {"name": "db", "image": "postgres:16", "env": {"POSTGRES_USER": "app", "POSTGRES_DB": "shop"}},
        {"name": "mail-box", "type": "http_mock", "ports": [8025]},
        {"name": "cache", "image": "redis:7"},
    ]
    lines = ran(tmp_path, spec_of(command, services=services)).lines
    assert len({line.split()[0] for line in lines[:4]}) == 2
    assert lines[4:] == [
        "db 5432 mail-box 8025 http://mail-box:8025",
        "postgresql://app@db:5432/shop redis://cache:6379/0",
        "42",
    ]


@pytest.mark.parametrize("latency", [0, 300])
def test_latency_of_the_network_is_felt_at_databases_and_mocks(tmp_path, latency):
    command = "curl -s -o /dev/null -w '%{time_total}' http://mail/"
    services = [{"name": "mail", "type": "http_mock", "routes": [{"path": "/", "status": 200}]}]
    found = ran(tmp_path, spec_of(command, services=services, determinism={"network_latency": f"{latency}ms"}))
    assert (float(found.text) > 0.29) == bool(latency)
