"""`holdfast map` in a world: values go through SQL, Redis, files and the answer, and faults of services are covered."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from world_runs import ran, spec_of

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))
AGENT = """
    import os, socket, psycopg

    def redis(*words):
        with socket.create_connection((os.environ["CACHE_HOST"], int(os.environ["CACHE_PORT"]))) as cache:
            said = [b"$%d\\r\\n%s\\r\\n" % (len(word), word.encode()) for word in words]
            cache.sendall(b"*%d\\r\\n" % len(words) + b"".join(said))
            return cache.recv(999).split(b"\\r\\n")[1].decode() if words[0] == "GET" else cache.recv(999)

    with psycopg.connect(os.environ["DATABASE_URL"]) as db:
        (code,) = db.execute("SELECT code FROM orders WHERE id = 1").fetchone()
    redis("SET", code, "R-99310-found")
    redis("GET", code)
    receipt = redis("GET", "voucher")
    with psycopg.connect(os.environ["DATABASE_URL"]) as db:
        db.execute("INSERT INTO bills VALUES (%s)", (code,))
    open("bill.txt", "w").write(f"bill for {code}")
    print("done:", code)
"""


TABLES = """
    CREATE TABLE orders (id int, code text);
    INSERT INTO orders VALUES (1, 'ORD-40417');
    CREATE TABLE bills (code text);
"""


def test_values_go_through_services_files_and_the_answer_and_faults_of_services_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    killed = {"service": "db", "mode": "killed_mid_transaction"}
    spec = spec_of(
        "python agent.py",
        services=[{"name": "db", "image": "postgres:16"}, {"name": "cache", "image": "redis:7"}],
        fixtures=[{"type": "sql", "service": "db", "sql": TABLES}],
        setup={"files": [{"path": "agent.py", "source": "agent.py"}]},
        chaos_matrix=[{"name": "calm"}, {"name": "killed", "service_faults": [killed]}],
    )
    ran(tmp_path, spec, files={"agent.py": AGENT})
    printed = subprocess.run([HOLDFAST, "map", "spec.yaml", "--json"], check=True, capture_output=True, text=True)
    found = json.loads(printed.stdout)
    feeds = {(one["plane"], one["target"], one["on_call"]): one["feeds"] for one in found["sites"]}
    assert set(feeds["transaction", "db", 1]) == {
        "cache connection 1", "cache connection 2", "db transaction 2", "row db.bills", "file bill.txt", "answer",
    }  # fmt: skip
    assert [(one["plane"], one["on_call"]) for one in found["sites"] if one["write"]] == [("transaction", 2)]
    order = [(one["target"], one["plane"], one["on_call"]) for one in found["sites"]]
    assert order.index(("db", "transaction", 1)) < order.index(("cache", "service", 1))
    assert order.index(("cache", "service", 3)) < order.index(("db", "transaction", 2))
    (row,) = (row for row in found["coverage"]["rows"] if (row["plane"], row["on_call"]) == ("transaction", 2))
    assert row["modes"]["killed_mid_transaction"]["state"] == "failed"
    assert found["coverage"]["failed"] == 1
