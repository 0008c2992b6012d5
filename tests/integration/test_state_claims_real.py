"""Agents that claim what was rolled back, or what nobody received, in real worlds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from world_runs import ran, spec_of

SERVICES: dict[str, dict[str, Any]] = {
    "postgres": {"name": "db", "image": "postgres:16", "env": {"POSTGRES_PASSWORD": "s3cret"}},
    "mysql": {"name": "db", "image": "mariadb:11", "env": {"MYSQL_ROOT_PASSWORD": "r00t123", "MYSQL_DATABASE": "shop"}},
}
LOGIN = {
    "postgres": "import psycopg; way = psycopg.connect(os.environ['DB_URL'])",
    "mysql": "import pymysql; way = pymysql.connect(host=os.environ['DB_HOST'], port=int(os.environ['DB_PORT']), "
    "user='root', password='r00t123', database='shop')",
}
AGENT = """
import os, sys
{login}
try:
    with way.cursor() as cursor:
        cursor.execute("INSERT INTO orders VALUES (1)")
    {last}
except Exception as error:
    print("it failed:", type(error).__name__, file=sys.stderr)
print("I have saved the order.")
"""
CLAIM = {
    "told": {
        "description": "d",
        "check": {
            "type": "claim_matches_state",
            "claims": [{"says": "saved the order", "did": {"type": "db_write", "table": "orders"}}],
        },
    }
}


def told(folder: Path, kind: str, last: str, *faults: dict[str, Any]) -> str:
    fixture = {"type": "sql", "service": "db", "sql": "CREATE TABLE orders (id int PRIMARY KEY)"}
    weather = {"chaos_matrix": [{"name": "w", "service_faults": list(faults)}]} if faults else {}
    agent = {"type": "command", "command": "python agent.py"}
    spec = spec_of(agent, services=[SERVICES[kind]], fixtures=[fixture], invariants=CLAIM, **weather)
    done = ran(folder, spec, files={"agent.py": AGENT.format(login=LOGIN[kind], last=last)})
    (verdict,) = done.verdicts
    return str(verdict.outcome)


@pytest.mark.parametrize("kind", sorted(SERVICES))
def test_a_write_that_was_rolled_back_makes_no_claim_true(tmp_path: Path, kind: str) -> None:
    found, lost = {}, {"service": "db", "mode": "killed_mid_transaction", "at": "commit", "outcome": "lost"}
    for name, last, faults in (
        ("kept", "way.commit()", ()),
        ("rolled back", "way.rollback()", ()),
        ("left open", "pass", ()),
        ("killed", "way.commit()", ({"service": "db", "mode": "killed_mid_transaction"},)),
        ("lost", "way.commit()", (lost,)),
        ("refused", "way.commit()", ({"service": "db", "mode": "serialization_failure"},)),
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        found[name] = told(tmp_path / name, kind, last, *faults)
    assert found == {**dict.fromkeys(found, "fail"), "kept": "pass"}


@pytest.mark.parametrize("key", ["", " PRIMARY KEY"], ids=["no key", "key"])
@pytest.mark.parametrize("kind", sorted(SERVICES))
def test_a_row_that_was_deleted_and_put_there_anew_makes_both_claims_true(tmp_path: Path, kind: str, key: str) -> None:
    statements = ["DELETE FROM orders WHERE id = 1", "INSERT INTO orders VALUES (1, 'new')"]
    agent = f"""
        import os
        {LOGIN[kind]}
        with way.cursor() as cursor:
            for statement in {statements}:
                cursor.execute(statement)
        way.commit()
        print("Deleted the old order, inserted the new one.")
    """
    claims = [
        {"says": f"{op}ed?", "did": {"type": "db_write", "table": "orders", "op": op}} for op in ("delete", "insert")
    ]
    rows = f"CREATE TABLE orders (id int{key}, word varchar(9)); INSERT INTO orders VALUES (1, 'old')"
    spec = spec_of(
        {"type": "command", "command": "python agent.py"},
        services=[SERVICES[kind]],
        fixtures=[{"type": "sql", "service": "db", "sql": rows}],
        invariants={"told": {"description": "d", "check": {"type": "claim_matches_state", "claims": claims}}},
    )
    (verdict,) = ran(tmp_path, spec, files={"agent.py": agent}).verdicts
    assert verdict.outcome == "pass", verdict.reason


def test_a_request_that_only_a_fault_answered_makes_no_claim_true(tmp_path: Path) -> None:
    did = {"type": "http_call", "host": "smtp", "method": "POST"}
    claim = {"type": "claim_matches_state", "claims": [{"says": "sent", "did": did}]}
    agent = """
        import urllib.request
        urllib.request.urlopen("http://smtp/api", data=b"x").read()
        print("The mail was sent.")
    """
    weather = [
        {"name": "calm"},
        {"name": "phantom", "tool_faults": [{"tool": "*", "match_url": "http://smtp/*", "mode": "phantom_success"}]},
    ]
    spec = spec_of(
        {"type": "command", "command": "python agent.py"},
        services=[
            {"name": "smtp", "type": "http_mock", "record": True, "routes": [{"method": "POST", "path": "/api"}]}
        ],
        invariants={"told": {"description": "d", "check": claim}},
        chaos_matrix=weather,
    )
    done = ran(tmp_path, spec, files={"agent.py": agent})
    calm, phantom = sorted(done.verdicts, key=lambda one: one.outcome, reverse=True)
    assert (calm.outcome, phantom.outcome) == ("pass", "fail")
    assert phantom.code == "claim-untrue"
    assert sorted(event["received"] for event in (e for seen in done.seen for e in _calls(seen))) == [False, True]


def _calls(seen: Any) -> list[dict[str, Any]]:
    return [event.details for event in seen.audit if event.type == "http_call"]
