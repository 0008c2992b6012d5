"""Forbidden rules in a real world, each kept and violated; and worlds in which a fault of the machine acts."""

import pytest
from world_runs import BACKENDS, ran, spec_of

DB = {
    "services": [
        {"name": "db", "image": "postgres:16"},
        {"name": "mail", "type": "http_mock"},
        {"name": "other", "type": "http_mock"},
    ],
    "fixtures": [{"type": "sql", "service": "db", "sql": "CREATE TABLE mine (id int); CREATE TABLE theirs (id int)"}],
    "secrets": [{"name": "TOKEN", "from": "static://sesame-sesame"}],
}
RULES = {
    "db_writes_outside": (["mine"], "psql -qc 'INSERT INTO {} VALUES (1)' $DATABASE_URL", "mine", "theirs"),
    "http_except": (["mail"], "curl -s -o /dev/null http://{}/", "mail", "other"),
    "file_writes_outside": (["src/"], "mkdir -p src; echo x > {}", "src/a", "b.txt"),
    "secrets_in_logs": ("deny", "echo {}", "nothing", "$TOKEN"),
}


@pytest.mark.parametrize("good", [True, False], ids=["kept", "violated"])
@pytest.mark.parametrize("rule", RULES)
def test_a_forbidden_rule(tmp_path, rule, good):
    setting, command, allowed, denied = RULES[rule]
    spec = spec_of(command.format(allowed if good else denied) + "; echo done", **DB, forbidden={rule: setting})
    found = ran(tmp_path, spec)
    assert found.only.error == ""
    violated, details = found.forbidden()[rule]
    assert violated is not good
    assert (found.case.status, found.case.composite) == (("pass", 1.0) if good else ("fail", 0.0))
    assert bool(details) is not good
    assert "sesame" not in str(found.only)


HIDDEN = {
    "db_writes_outside-truncate": (
        """psql -qc "DO 'BEGIN TRUNCATE theirs; END'" $DATABASE_URL""",
        "truncate db.theirs",
    ),
    "db_writes_outside-schema": ("psql -qc 'INSERT INTO app.mine VALUES (1)' $DATABASE_URL", "insert db.app.mine"),
    "secrets_in_logs-base64": ("printf %s $TOKEN | base64", "TOKEN in its answer"),
}


@pytest.mark.parametrize("deed", HIDDEN)
def test_a_deed_in_disguise_is_seen(tmp_path, deed):
    rule = deed.partition("-")[0]
    command, seen = HIDDEN[deed]
    sql = "CREATE TABLE mine (id int); CREATE TABLE theirs (id int); CREATE SCHEMA app; CREATE TABLE app.mine (id int)"
    world = {**DB, "fixtures": [{"type": "sql", "service": "db", "sql": f"{sql}; INSERT INTO theirs VALUES (1)"}]}
    found = ran(tmp_path, spec_of(f"{command}; echo done", **world, forbidden={rule: RULES[rule][0]}))
    violated, details = found.forbidden()[rule]
    assert (violated, seen in details) == (True, True)


@pytest.mark.parametrize(
    ("listed", "violated"), [("api.pay.test", False), ("mail", False), ("*.pay.test", False), ("other", True)]
)
def test_a_host_that_stands_for_a_service_is_allowed_by_either_name(tmp_path, listed, violated):
    overrides = {"dns_overrides": {"api.pay.test": "mail"}}
    command = "curl -s -o /dev/null https://api.pay.test/; echo done"
    found = ran(tmp_path, spec_of(command, **DB, network=overrides, forbidden={"http_except": [listed]}))
    assert found.forbidden()["http_except"][0] is violated
    assert [call["host"] for call in found.audit("http_call")] == ["api.pay.test"]


@pytest.mark.parametrize(("path", "status"), [("src/a", "error"), ("b.txt", "fail")])
def test_writes_that_cannot_be_seen_do_not_acquit(tmp_path, path, status):
    command = f"mkdir -p src; echo x > {path}; echo x > {tmp_path}/elsewhere; echo done"
    spec = spec_of(command, forbidden={"file_writes_outside": ["src/"]})
    found = ran(tmp_path, spec, backend="process")
    assert (tmp_path / "elsewhere").exists()
    assert found.case.status == status
    (rule,) = found.only.forbidden
    assert (rule.violated, bool(rule.error)) == (status == "fail", status == "error")
    (told,) = [one for one in found.only.isolation if one.feature == "file audit"]
    assert not told.enforced
    assert "outside the workspace" in told.why


def chaos(*faults):
    return {"chaos_matrix": [{"name": "storm", "world_faults": [*faults]}]}


@BACKENDS
def test_a_killed_agent_is_started_again_with_what_it_left(tmp_path, backend):
    command = "echo x >> times; wc -l < times; if [ $(wc -l < times) = 1 ]; then sleep 600; fi"
    rules = {"twice": {"description": "d", "check": {"type": "command_exit", "command": "[ $(wc -l < times) = 2 ]"}}}
    spec = spec_of(command, invariants=rules, **chaos({"mode": "killed", "after_ms": 700}))
    found = ran(tmp_path, spec, backend=backend)
    assert (found.case.status, found.text.strip()) == ("pass", "2")
    assert [(met.mode, met.effect) for met in found.only.ledger] == [("killed", "met")]


def test_an_agent_that_is_killed_for_good(tmp_path):
    spec = spec_of("sleep 600", **chaos({"mode": "killed", "after_ms": 500, "restart": False}))
    found = ran(tmp_path, spec)
    assert (found.case.status, found.only.ending) == ("fail", "crashed")


@BACKENDS
def test_the_clock_starts_where_the_spec_says_and_goes_on(tmp_path, backend):
    command = "date -u +%F; python3 -c 'import time, datetime as d; a = time.time(); time.sleep(0.2);"
    command += " print(d.date.today(), 0.15 < time.time() - a < 5)'"
    found = ran(tmp_path, spec_of(command, determinism={"clock": "2031-05-06T07:08:09Z"}), backend=backend)
    assert found.lines == ["2031-05-06", "2031-05-06 True"]
    (clock,) = [one for one in found.only.isolation if one.feature == "clock"]
    assert clock.enforced


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        ({"mode": "jump", "to": "month_end", "before_s": 5}, "2026-01-31"),
        ({"mode": "skew", "offset_s": 172800}, "2026-01-03"),
        ({"mode": "frozen"}, "2026-01-01"),
    ],
)
def test_a_fault_of_the_clock_acts_on_an_agent_that_runs(tmp_path, fault, shown):
    command = "date -u +%F; sleep 1.5; date -u +%F; date +%s%N; sleep 0.1; date +%s%N"
    spec = spec_of(command, determinism={"clock": "2026-01-01T00:00:00Z"}, **chaos({**fault, "after_ms": 700}))
    found = ran(tmp_path, spec)
    assert found.only.error == ""
    assert found.lines[:2] == ["2026-01-01", shown]
    assert (found.lines[2] == found.lines[3]) is (fault["mode"] == "frozen")
    assert [(met.effect, met.note) for met in found.only.ledger] == [("met", "")]


@BACKENDS
@pytest.mark.parametrize(
    ("command", "effect", "note"),
    [
        ("echo 1 > a; cat a; sleep 0.01; ls", "no_effect", "no program read the clock afterwards"),
        ("python3 -c 'import json; print(1)'", "no_effect", "no program read the clock afterwards"),
        ("cat /dev/null; sh -c 'python3 -c \"import time; print(time.time())\"'", "met", ""),
        ("date -u +%F; env -i date -u +%F", "met", ""),
        ("echo no; env -i date -u +%F", "no_effect", "no program read the clock afterwards"),
    ],
)
def test_a_fault_of_the_clock_is_met_if_a_program_reads_it(tmp_path, backend, command, effect, note):
    found = ran(tmp_path, spec_of(command, **chaos({"mode": "skew"})), backend=backend)
    assert [(met.effect, met.note) for met in found.only.ledger] == [(effect, note)]


def test_a_change_of_the_clock_that_the_next_one_hides_is_not_met(tmp_path):
    found = ran(tmp_path, spec_of("date -u +%F", **chaos({"mode": "skew"}, {"mode": "jump"})))
    hidden = "the clock was changed again before a program read it"
    assert [(met.effect, met.note) for met in found.only.ledger] == [("no_effect", hidden), ("met", "")]


def test_a_fault_of_the_clock_needs_no_clock_in_the_spec(tmp_path):
    import datetime

    found = ran(tmp_path, spec_of("date -u +%Y", **chaos({"mode": "skew", "offset_s": 3 * 366 * 86400})))
    assert int(found.text) >= datetime.datetime.now(datetime.UTC).year + 3


def test_a_fault_of_memory_is_met(tmp_path):
    eat = "python3 -c 'x = bytearray(b\"x\" * 300_000_000); print(len(x))'"
    calm, storm = ran(
        tmp_path,
        {
            **spec_of(eat),
            "chaos_matrix": [
                {"name": "calm"},
                {"name": "storm", "world_faults": [{"mode": "memory_limit", "megabytes": 100}]},
            ],
        },
    ).cases
    assert (calm.status, storm.status) == ("pass", "fail")


def test_what_this_world_cannot_do_is_said(tmp_path):
    spec = spec_of(
        "echo hi",
        base="python:3.12",
        setup={"packages": ["jq"]},
        network={"ingress": {"default": "allow"}},
        determinism={"dns": "real"},
    )
    found = ran(tmp_path, spec)
    lacks = {one.feature: one.why for one in found.only.isolation if one.asked and not one.enforced}
    assert {"base", "setup.packages", "network.ingress", "determinism.dns"} <= lacks.keys()
    assert "python:3.12" in lacks["base"]
    assert "jq" in lacks["setup.packages"]
