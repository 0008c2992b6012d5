"""The world's sections and the end-state checks."""

import pytest

BASE = """
version: 1
id: renewal-mail
agent: {endpoint: "http://x"}
task: {prompt: "Send the mail"}
"""
SERVICES = """
services:
  - {name: db, image: "postgres:16", env: {POSTGRES_PASSWORD: "{{ secrets.DB }}"}, ports: [5432], wait_for: pg_isready}
  - {name: smtp, type: http_mock, record: true, routes: [{method: POST, path: /api/messages, status: 202}]}
  - {name: quiet, type: http_mock}
  - {name: legacy, type: external, url: "postgresql://h/x"}
secrets: [DB]
"""
WORLD = """
base: "python:3.12"
setup: {packages: [git], commands: ["echo ${HOME}"], files: [{path: a, content: b, mode: "0755"}], env: {A: 1}}
resources: {timeout: 10m, memory: 2Gi, cpu: 2, disk: 1Gi, pids: 512, concurrency_limit: 4}
fixtures:
  - {type: sql, service: db, sql: "select 1"}
  - {type: directory, source: ., path: .}
  - {type: files, files: [{path: a, content: b}]}
  - {type: git_repo, url: "https://x/y", branch: main, depth: 1, path: .}
  - {type: drift, service: db, table: customers, rate: 0.05, kinds: [null, swap, stale, duplicate]}
network:
  egress: {default: deny, allow: ["*.example.com"]}
  ingress: {allow: [{from: host, to_port: 3000}]}
  dns_overrides: {a.b: smtp}
determinism: {clock: "2026-01-01T00:00:00Z", seed: 42, network_latency: 0ms, dns: static}
audit: {commands: true}
forbidden: {db_writes_outside: [customers], http_except: [smtp], secrets_in_logs: deny, file_writes_outside: [src/]}
"""
TAKEN = (
    *("app", "/", "/tmp/x", "/usr/local/app", "/opt/x", "/workspace", "/workspace/x", "/app/../etc"),
    *("/home", "/home/", "/home/agent", "/home/agent/app"),
)
"""Paths that the workspace cannot have, too."""


def rule(check):
    return f"invariants:\n  r: {{description: d, check: {check}}}\n"


def test_every_world_key_loads_and_opens_a_world(file):
    spec = file.spec(BASE + SERVICES + WORLD, {"DB": "hunter22"})
    assert spec.unbuilt == ()
    assert spec.world is not None
    assert [service.kind for service in spec.world.services] == ["postgres", "http_mock", "http_mock", "external"]


@pytest.mark.parametrize(
    ("entry", "message", "hint"),
    [
        ('from: "env:MYTOK"', 'from takes generated or "static://value"', 'write source: "env:MYTOK"'),
        ('from: "file:a/b"', 'from takes generated or "static://value"', 'write source: "file:a/b"'),
        ("from: env", 'from takes generated or "static://value"', "write source: env"),
        ("from: other", 'from takes generated or "static://value"', 'source: "env:OTHER"'),
        ("source: generated", 'source takes env, "env:OTHER"', "write from: generated"),
        ('source: "static://x"', 'source takes env, "env:OTHER"', 'write from: "static://x"'),
        ("source: MYTOK", 'source takes env, "env:OTHER"', 'write source: "env:MYTOK"'),
        ("source: [a]", 'source takes env, "env:OTHER"', 'source: "env:OTHER" reads the variable OTHER'),
    ],
)
def test_where_a_secret_comes_from_is_said_by_the_right_key(file, entry, message, hint):
    found = file.error(BASE + f"secrets: [{{name: TOK, {entry}}}]\n" + rule("{type: file_exists, path: a}"))
    assert found.path == f"secrets[0].{entry.partition(':')[0]}"
    assert message in found.message
    assert hint in found.hint


def test_seed_alone_opens_no_world(file):
    assert file.spec(BASE + "determinism: {seed: 1}\n").world is None


@pytest.mark.parametrize(
    "check",
    [
        "{type: command_exit, command: npm test, exit_code: 0, timeout: 120s}",
        "{type: file_exists, path: output.json}",
        "{type: file_absent, path: .tmp/cache}",
        "{type: file_content, path: a, contains: x, not_contains: y, pattern: z}",
        "{type: sql, service: db, query: select 1, equals: 0}",
        "{type: sql, service: db, query: select 1, equals: null}",
        "{type: http_mock_assertions, service: smtp, assertions: [{field: 'requests[0].body', contains: a}]}",
        "{type: db_unchanged_except, service: db, tables: [orders]}",
        "{type: files_changed_only, paths: [src/]}",
        "{type: claim_matches_state, claims: [{says: sent, did: {type: http_call, host: smtp, status: 202}}]}",
    ],
)
def test_end_state_checks_load(file, check):
    spec = file.spec(BASE + SERVICES + rule(check), {"DB": "hunter22"})
    assert not [u.section for u in spec.unbuilt if u.section.startswith("inv")]


@pytest.mark.parametrize(
    ("model", "wrong"),
    [
        ("gpt-4o", []),
        ("ollama/q", []),
        ("paragon-fast", ["invariants.r.check.model"]),
        ("m", ["invariants.r.check.model"]),
    ],
)
def test_a_judge_loads_and_its_model_needs_a_meaning(file, model, wrong):
    check = (
        f"{{type: llm_as_judge, model: {model}, criteria: c, input_from: smtp.last_request.body, rubric: {{pass: a}}}}"
    )
    spec = file.spec(BASE + SERVICES + rule(check), {"DB": "hunter22"})
    assert [u.section for u in spec.unbuilt if u.section.startswith("inv")] == wrong
    mapped = f"models: {{{model}: {{name: x, base_url: 'http://127.0.0.1:1', temperature: 0.5}}}}\n"
    spec = file.spec(BASE + SERVICES + rule(check) + mapped, {"DB": "hunter22"})
    assert not [u.section for u in spec.unbuilt if u.section.startswith("inv")]
    assert spec.models[model].temperature == 0.5


@pytest.mark.parametrize(("source", "opens"), [("agent_output", False), ("stdout", False), ("workspace", True)])
def test_a_judge_opens_a_world_only_for_what_lies_there(file, source, opens):
    check = f"{{type: llm_as_judge, model: gpt-4o, criteria: c, input_from: {source}}}"
    assert (file.spec(BASE + rule(check)).world is not None) == opens


def test_a_check_of_the_state_has_no_turns_to_read(file):
    rules = "invariants: {r: {over: any, check: {type: file_exists, path: a}}}\n"
    assert file.error(BASE + rules).code == "bad-setting"


@pytest.mark.parametrize(
    ("check", "code"),
    [
        ("{type: file_exists, path: ../x}", "bad-setting"),
        ("{type: file_exists, path: /etc/passwd}", "bad-setting"),
        ("{type: file_content, path: a}", "bad-setting"),
        ("{type: file_content, path: a, pattern: '('}", "bad-setting"),
        ("{type: sql, service: db, query: q}", "bad-setting"),
        ("{type: sql, service: dbb, query: q, equals: 1}", "unknown-service"),
        ("{type: http_mock_assertions, service: quiet, assertions: [{field: request_count, equals: 1}]}", "conflict"),
        ("{type: http_mock_assertions, service: smtp, assertions: [{field: nothing, equals: 1}]}", "bad-setting"),
        ("{type: http_mock_assertions, service: smtp, assertions: [{field: request_count}]}", "bad-setting"),
        ("{type: llm_as_judge, model: m, criteria: c, input_from: smpt.last_request.body}", "unknown-service"),
        ("{type: llm_as_judge, model: m, criteria: c, input_from: smtp.body}", "bad-setting"),
        ("{type: llm_as_judge, model: m, criteria: c, input_from: quiet.last_request.body}", "conflict"),
        ("{type: llm_as_judge, model: m, criteria: c, input_from: answer}", "bad-setting"),
        ("{type: llm_as_judge, model: m, criteria: c, votes: 0}", "out-of-range"),
        ("{type: llm_as_judge, model: m, criteria: c, temperature: 3}", "out-of-range"),
        ("{type: custom, script: nowhere.py}", "missing-file"),
        ("{type: sql, service: smtp, query: q, equals: 1}", "conflict"),
        ("{type: db_unchanged_except, service: quiet}", "conflict"),
        ("{type: db_unchanged_except, service: nowhere}", "unknown-service"),
        (
            "{type: http_mock_assertions, service: smtp, assertions: [{field: last_request.bdy, equals: 1}]}",
            "bad-setting",
        ),
        ("{type: files_changed_only, paths: [../x]}", "bad-setting"),
        ("{type: claim_matches_state, claims: [{says: a, did: {type: mail}}]}", "bad-setting"),
        ("{type: claim_matches_state, claims: []}", "out-of-range"),
        ("{type: command_exit, command: x, exit_code: 256}", "out-of-range"),
    ],
)
def test_bad_end_state_checks_are_errors(file, check, code):
    assert file.error(BASE + SERVICES + rule(check)).code == code


def test_custom_script_is_a_file_of_the_spec(file):
    file.beside("checks/verify.py")
    assert file.spec(BASE + rule("{type: custom, script: checks/verify.py}")).files == ("checks/verify.py",)


def test_agent_module_is_a_file_of_the_spec(file):
    file.beside("bot.py")
    spec = file.spec("agent: {type: python, endpoint: 'bot:ask'}\ntask: {prompt: p}\n")
    assert spec.files == ("bot.py",)


@pytest.mark.parametrize(
    ("extra", "path"),
    [
        ("services: [{name: db}]", "services[0].image"),
        ("services: [{name: a, type: http_mock}, {name: a, type: http_mock}]", "services[1].name"),
        ("services: [{name: a, image: i, record: true}]", "services[0].record"),
        ("fixtures: [{type: sql, service: db, sql: q}]", "fixtures[0].service"),
        ("fixtures: [{type: directory, source: ., table: t}]", "fixtures[0].table"),
        ("fixtures: [{type: directory, source: nowhere}]", "fixtures[0].source"),
        ("audit: {db_writes: false}\nforbidden: {db_writes_outside: [a]}", "forbidden.db_writes_outside"),
        ("secrets: [{name: A, source: vault}]", "secrets[0].source"),
        ("secrets: [A, A]", "secrets[1]"),
        ("services: [{name: a, type: http_mock, env: {B: c}}]", "services[0].env"),
        ("services: [{name: a, type: external, url: 'http://h', wait_for: w}]", "services[0].wait_for"),
        ("services: [{name: a, image: i, url: 'http://h'}]", "services[0].url"),
        ("network: {dns_overrides: {api.x.com: nobody}}", "network.dns_overrides.api.x.com"),
        ("network: {ingress: {allow: [{from: internet, to_port: 3000}]}}", "network.ingress.allow[0].from"),
        ("determinism: {clock: tomorrow}", "determinism.clock"),
        ("setup: {files: [{path: a, mode: 755}]}", "setup.files[0].mode"),
        ("resources: {memory: lots}", "resources.memory"),
        ("setup: {files: [{path: ../a, content: b}]}", "setup.files[0].path"),
        ("setup: {home_files: [{path: .bot/../../a, content: b}]}", "setup.home_files[0].path"),
        ("setup: {home_files: [{path: /etc/a, content: b}]}", "setup.home_files[0].path"),
        ("setup: {home_files: [{path: a}]}", "setup.home_files[0]"),
        ("setup: {home_files: [{path: a, source: missing}]}", "setup.home_files[0].source"),
        ("fixtures: [{type: directory, source: ., path: /etc}]", "fixtures[0].path"),
        ("secrets: [{name: A, scope: {file: /etc/a}}]", "secrets[0].scope.file"),
        ("fixtures: [{type: directory, source: ., path: /workspace/../etc}]", "fixtures[0].path"),
        ("fixtures: [{type: directory, source: ., path: /workspaces}]", "fixtures[0].path"),
        ("setup: {home_files: [{path: /workspace/a, content: b}]}", "setup.home_files[0].path"),
        *((f"setup: {{workdir: {path}}}", "setup.workdir") for path in TAKEN),
    ],
)
def test_bad_worlds_are_errors(file, extra, path):
    assert path in [p.path for p in file.errors(BASE + extra + "\n")]


def test_a_path_of_the_workspace_may_be_written_as_programs_see_it(file):
    fixtures = "[{type: directory, source: ., path: /workspace}, {type: git_repo, url: u, path: /workspace/repo/}]"
    placed = "files: [{path: /workspace/a/b, content: c}], workdir: /app"
    secrets = "secrets: [{name: A, from: generated, scope: {file: /workspace/.key}}]"
    world = file.spec(f"{BASE}fixtures: {fixtures}\nsetup: {{{placed}}}\n{secrets}\n").world
    assert [fixture.path for fixture in world.fixtures] == [".", "repo"]
    assert [one.path for one in world.setup.files] == ["a/b"]
    assert (world.setup.workdir, world.secrets[0].file) == ("/app", ".key")


def test_service_names_are_near_missed(file):
    found = file.error(BASE + SERVICES + rule("{type: sql, service: dbs, query: q, equals: 1}"))
    assert found.hint == "did you mean db?"


def test_a_claim_needs_the_audit_that_would_show_it(file):
    claim = "{type: claim_matches_state, claims: [{says: a, did: {type: db_write}}]}"
    found = file.error(BASE + "audit: {db_writes: false}\n" + rule(claim))
    assert (found.path, found.code) == ("invariants.r.check.claims[0].did.type", "conflict")
    assert file.spec(BASE + "audit: {commands: false}\n" + rule(claim))


def test_a_rule_on_the_state_opens_a_world(file):
    assert file.spec(BASE + rule("{type: file_exists, path: a}")).world is not None
    assert file.spec(BASE + rule("{type: contains, value: a}")).world is None


@pytest.mark.parametrize(
    ("service", "wrong"),
    [
        ('{name: it, image: "redis:7"}', True),
        ("{name: it, type: external, url: 'redis://h:1'}", True),
        ("{name: it, type: external, url: 'amqp://h'}", True),
        ('{name: it, image: "nobody/knows:1", ports: [1]}', True),
        ("{name: it, type: external, url: 'postgres://h/d'}", False),
        ("{name: it, type: external, url: '${SOMEWHERE:-postgres://h/d}'}", False),
        ('{name: it, image: "postgres:16"}', False),
        ('{name: it, image: "mariadb:11", env: {MARIADB_DATABASE: app}}', False),
    ],
)
@pytest.mark.parametrize(
    "rule",
    [
        "invariants: {r: {description: d, check: {type: sql, service: it, query: 'SELECT 1', equals: 1}}}",
        "invariants: {r: {description: d, check: {type: db_unchanged_except, service: it}}}",
        "invariants: {r: {description: d, check: {type: completes}}}\nforbidden: {db_writes_outside: [orders]}",
    ],
)
def test_what_asks_for_tables_is_refused_where_there_can_be_none(file, service, wrong, rule):
    text = f"{BASE}services: [{service}]\n{rule}\n"
    assert [one.code for one in file.errors(text)] == (["conflict"] if wrong else [])


@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        ("setup: {commands: [ls, 'echo $(cat {{ params.x }})']}", "setup.commands[1]", "setup.env"),
        (
            "services: [{name: db, image: 'postgres:16', wait_for: 'a `b {{ params.x }}`'}]",
            "services[0].wait_for",
            "out",
        ),
        (rule("{type: command_exit, command: 'a # {{ params.x }}'}"), "invariants.r.check.command", "setup.env"),
    ],
)
def test_a_parameter_that_the_shell_cannot_take_as_a_word_is_refused(file, text, path, hint):
    rules = "" if text.startswith("invariants") else rule("{type: completes}")
    (found,) = [
        problem
        for problem in file.check(f"{BASE}parallelism: {{matrix: {{x: [a]}}}}\n{rules}{text}", {}, part="run").problems
        if problem.severity == "error"
    ]
    assert (found.path, found.code, hint in found.hint) == (path, "unquotable-param", True)
