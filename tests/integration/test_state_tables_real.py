"""Tables told apart by their content, on real servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers_kit import Bay, bay

from holdfast.checks.state.claim_matches_state import Claim, ClaimMatchesState
from holdfast.checks.state.db_unchanged_except import DbUnchangedExcept
from holdfast.checks.state.sql import Sql
from holdfast.checks.state.tables import read_fingerprints
from holdfast.errors import HarnessError, QueryFailed
from holdfast.model.observation import Observation
from holdfast.model.world import ServiceSpec
from world_kit import FakeWorld, shown

SPECS = {
    "postgres": ServiceSpec("db", "postgres", image="postgres:16", env={"POSTGRES_PASSWORD": "s3cret"}),
    "mysql": ServiceSpec("db", "mysql", image="mysql:8", env={"MYSQL_ROOT_PASSWORD": "r00t", "MYSQL_DATABASE": "shop"}),
}
SEED = """
CREATE TABLE customers (id int PRIMARY KEY, email varchar(50), paid decimal(8, 2));
INSERT INTO customers VALUES (1, 'a@x', 1.10), (2, 'b@x', NULL), (3, 'c@x', 3);
CREATE TABLE orders (id int, note varchar(20));
CREATE TABLE spare (id int);
"""


@pytest.fixture(scope="module", params=sorted(SPECS))
def sea(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bay]:
    with bay(SPECS[request.param], tmp_path_factory.mktemp(request.param)) as opened:
        yield opened


def changed(sea: Bay, *statements: str) -> set[str]:
    """The tables, by bare name, whose marks differ after these statements."""

    async def scene(db: Any) -> set[str]:
        await db.execute(SEED)
        before = await read_fingerprints(db, timeout_s=10)
        for statement in statements:
            await db.execute(statement)
        after = await read_fingerprints(db, timeout_s=10)
        names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        return {name.rpartition(".")[2] for name in names}

    return sea.with_server(scene)


@pytest.mark.parametrize(
    ("statements", "tables"),
    [
        ((), set()),
        (("UPDATE customers SET email = 'z' WHERE id = 2",), {"customers"}),
        (("UPDATE customers SET email = 'z'", "UPDATE customers SET email = 'y'"), {"customers"}),
        (("INSERT INTO orders VALUES (1, 'x')",), {"orders"}),
        (("INSERT INTO orders VALUES (1, 'x')", "DELETE FROM orders"), set()),
        (("DELETE FROM customers WHERE id = 1", "INSERT INTO customers VALUES (1, 'a@x', 1.10)"), set()),
        (("DROP TABLE spare", "CREATE TABLE extra (id int)"), {"spare", "extra"}),
        (("ALTER TABLE spare ADD COLUMN more int",), {"spare"}),
    ],
)
def test_marks_change_with_what_is_in_a_table_and_with_nothing_else(
    sea: Bay, statements: tuple[str, ...], tables: set[str]
) -> None:
    assert changed(sea, *statements) == tables


WIDE = """
CREATE TABLE parents (id int PRIMARY KEY);
INSERT INTO parents VALUES (1), (2);
CREATE TABLE people (id int PRIMARY KEY, first varchar(20) DEFAULT 'x', second varchar(20) NOT NULL, size float,
  parent int, CONSTRAINT belongs FOREIGN KEY (parent) REFERENCES parents (id), CONSTRAINT once UNIQUE (second),
  CONSTRAINT sound CHECK (id < 100));
INSERT INTO people VALUES (1, 'ab', 'c', 0.1, 1), (2, NULL, '', 0.2, 1), (3, '', 'e', 0.3, 2);
CREATE INDEX quick ON people (first);
"""
BOTH = [
    "UPDATE people SET first = 'a', second = 'bc' WHERE id = 1",
    "UPDATE people SET first = 'c', second = 'ab' WHERE id = 1",
    "UPDATE people SET first = '' WHERE id = 2",
    "UPDATE people SET first = NULL WHERE id = 3",
    "UPDATE people SET size = 0.1000001 WHERE id = 1",
    "UPDATE people SET first = CASE id WHEN 1 THEN '' ELSE 'ab' END WHERE id IN (1, 3)",
    "UPDATE people SET parent = 2 WHERE id = 1; UPDATE people SET parent = 1 WHERE id = 3",
    "ALTER TABLE people DROP CONSTRAINT belongs",
    "ALTER TABLE people DROP CONSTRAINT sound",
    "ALTER TABLE people ALTER COLUMN first DROP DEFAULT",
    "ALTER TABLE people ALTER COLUMN first SET DEFAULT 'y'",
]
POSTGRES = [
    "ALTER TABLE people DROP CONSTRAINT people_pkey",
    "ALTER TABLE people DROP CONSTRAINT once",
    "ALTER TABLE people ALTER COLUMN first TYPE varchar(30)",
    "ALTER TABLE people ALTER COLUMN second DROP NOT NULL",
    "DROP INDEX quick",
    "ALTER TABLE people DISABLE TRIGGER noted",
    "DROP TRIGGER noted ON people",
    "ALTER TABLE people ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE people SET UNLOGGED",
    "GRANT SELECT ON people TO PUBLIC",
    "CREATE RULE none AS ON DELETE TO people DO INSTEAD NOTHING",
    "ALTER TYPE mood ADD VALUE 'bad'",
    "ALTER DOMAIN small DROP CONSTRAINT small_check",
]
MYSQL = [
    "ALTER TABLE people DROP PRIMARY KEY",
    "ALTER TABLE people DROP INDEX once",
    "ALTER TABLE people MODIFY first varchar(30) DEFAULT 'x'",
    "ALTER TABLE people MODIFY second varchar(20)",
    "DROP INDEX quick ON people",
    "DROP TRIGGER noted",
    "DROP TRIGGER noted; CREATE TRIGGER noted BEFORE DELETE ON people FOR EACH ROW SET @a = 2",
    "ALTER TABLE people CHARACTER SET latin1",
]
MORE = {
    "postgres": """
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER noted AFTER DELETE ON people FOR EACH ROW EXECUTE FUNCTION note();
CREATE TYPE mood AS ENUM ('good'); CREATE DOMAIN small AS int CONSTRAINT small_check CHECK (VALUE < 9);
ALTER TABLE people ADD COLUMN how mood, ADD COLUMN much small;
""",
    "mysql": "CREATE TRIGGER noted BEFORE DELETE ON people FOR EACH ROW SET @a = 1;",
}
NOTHING = {
    "postgres": [
        "UPDATE people SET first = first",
        "BEGIN; DELETE FROM people; ALTER TABLE people DROP CONSTRAINT once; ROLLBACK",
        "VACUUM FULL people",
        "ALTER DATABASE postgres SET datestyle = 'German'; ALTER DATABASE postgres SET timezone = 'Asia/Tokyo'",
        "CREATE TABLE other (parent int REFERENCES people (id)); DROP TABLE other",
        "ANALYZE people",
    ],
    "mysql": ["UPDATE people SET first = first", "BEGIN; DELETE FROM people; ROLLBACK", "ANALYZE TABLE people"],
}


def seen_in_people(sea: Bay, statements: list[str]) -> dict[str, bool]:
    """Whether each of the statements, one server for all, changes the mark of the table `people`."""

    async def scene(db: Any) -> dict[str, bool]:
        kind, found = db.spec.kind, {}
        for statement in statements:
            await db.execute(WIDE + MORE[kind])
            before = await read_fingerprints(db, timeout_s=10)
            await db.execute(statement)
            after = await read_fingerprints(db, timeout_s=10)
            (name,) = (name for name in before if name.endswith(".people"))
            found[statement] = before[name] != after[name]
            await db.execute("DROP TABLE people; DROP TABLE parents;")
            if kind == "postgres":
                await db.execute("DROP FUNCTION note; DROP TYPE mood; DROP DOMAIN small;")
        return found

    return sea.with_server(scene)


def test_a_value_that_moves_and_a_shape_that_changes_are_seen(sea: Bay) -> None:
    kind = sea.with_server(_kind)
    statements = BOTH + (POSTGRES if kind == "postgres" else MYSQL)
    assert seen_in_people(sea, statements) == dict.fromkeys(statements, True)


def test_what_leaves_a_table_as_it_was_is_no_change(sea: Bay) -> None:
    statements = NOTHING[sea.with_server(_kind)]
    assert seen_in_people(sea, statements) == dict.fromkeys(statements, False)


def test_an_agent_cannot_disguise_what_it_changes(sea: Bay) -> None:
    secret_forms = {"mysql": "ALTER TABLE people MODIFY size double;"}
    secret_forms["postgres"] = """
    CREATE OR REPLACE FUNCTION same(people) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''x''::text';
    CREATE CAST (people AS text) WITH FUNCTION same(people);
    ALTER DATABASE postgres SET extra_float_digits = -15;
    ALTER TABLE people ALTER COLUMN size TYPE double precision;
    """
    statements = ["UPDATE people SET first = 'z' WHERE id = 1", "UPDATE people SET size = size + 1e-9 WHERE id = 1"]

    async def scene(db: Any) -> list[bool]:
        await db.execute(WIDE + MORE[db.spec.kind] + secret_forms[db.spec.kind])
        found = []
        for statement in statements:
            before = await read_fingerprints(db, timeout_s=10)
            await db.execute(statement)
            found.append(before != await read_fingerprints(db, timeout_s=10))
        return found

    assert sea.with_server(scene) == [True, True]


async def _kind(db: Any) -> str:
    return str(db.spec.kind)


def test_the_check_convicts_a_write_elsewhere(sea: Bay, tmp_path: Path) -> None:
    async def scene(db: Any) -> list[bool | None]:
        await db.execute(SEED)
        check, world = DbUnchangedExcept("db", ("orders",)), FakeWorld(tmp_path, db)
        await check.foresee(world)
        await db.execute("INSERT INTO orders VALUES (1, 'x')")
        kept = check.decide(shown(await check.gather(world, Observation("t")))).passed
        await db.execute("DELETE FROM customers")
        broken = check.decide(shown(await check.gather(world, Observation("t")))).passed
        return [kept, broken]

    assert sea.with_server(scene) == [True, False]


def test_a_bare_name_is_no_table_of_another_schema(sea: Bay, tmp_path: Path) -> None:
    async def scene(db: Any) -> list[bool | None]:
        await db.execute("CREATE SCHEMA other; CREATE TABLE other.orders (id int);" + SEED)
        world = FakeWorld(tmp_path, db)
        checks = [DbUnchangedExcept("db", (allowed,)) for allowed in ("orders", "other.orders", "*.orders")]
        for check in checks:
            await check.foresee(world)
        await db.execute("INSERT INTO other.orders VALUES (1)")
        found = [check.decide(shown(await check.gather(world, Observation("t")))).passed for check in checks]
        await db.execute("DROP SCHEMA other" + (" CASCADE" if db.spec.kind == "postgres" else ""))
        return found

    assert sea.with_server(scene) == [False, True, True]


def test_a_query_of_the_rule_on_a_real_database(sea: Bay, tmp_path: Path) -> None:
    async def scene(db: Any) -> list[bool | None]:
        await db.execute(SEED)
        world = FakeWorld(tmp_path, db)
        found = []
        for query, expected in (
            ("SELECT count(*) FROM customers", {"equals": 3}),
            ("SELECT paid FROM customers WHERE id = 1", {"equals": 1.1}),
            ("SELECT paid FROM customers WHERE id = 2", {"equals": None}),
            ("SELECT avg(id) / 3 FROM customers", {"at_least": 0.66, "at_most": 0.67}),
            ("SELECT id = 1 FROM customers WHERE id = 1", {"equals": True}),
            ("SELECT email FROM customers ORDER BY id", {"equals": "a@x", "rows": 3}),
        ):
            check = Sql("db", query, **expected)
            await check.foresee(world)
            found.append(check.decide(shown(await check.gather(world, Observation("t")))).passed)
        with pytest.raises(QueryFailed):
            await Sql("db", "SELECT nothing FROM nowhere", equals=1).foresee(world)
        await db.execute("DROP TABLE customers")
        gone = Sql("db", "SELECT count(*) FROM customers", equals=3)
        found.append(gone.decide(shown(await gone.gather(world, Observation("t")))).passed)
        return found

    assert sea.with_server(scene) == [True] * 6 + [False]


@pytest.mark.parametrize(
    ("statements", "did", "passed"),
    [
        ("BEGIN; INSERT INTO orders VALUES (1, 'x'); ROLLBACK", {"table": "orders"}, False),
        ("BEGIN; UPDATE customers SET email = 'z'; ROLLBACK", {"table": "customers"}, False),
        ("BEGIN; DELETE FROM customers; ROLLBACK", {"table": "customers"}, False),
        ("BEGIN; INSERT INTO orders VALUES (1, 'x'); SAVEPOINT s; INSERT INTO orders VALUES (2, 'y'); "
         "ROLLBACK TO SAVEPOINT s; COMMIT", {"table": "orders", "rows": 2}, False),
        ("BEGIN; INSERT INTO orders VALUES (1, 'x'); SAVEPOINT s; INSERT INTO orders VALUES (2, 'y'); "
         "ROLLBACK TO SAVEPOINT s; COMMIT", {"table": "orders", "rows": 1}, True),
        ("UPDATE customers SET email = 'z' WHERE id = 1", {"table": "customers", "rows": 1}, True),
        ("DELETE FROM customers WHERE id = 1", {"table": "customers"}, True),
        ("CREATE TABLE more (id int)", {"table": "more", "op": "create"}, True),
    ],
)  # fmt: skip
def test_a_claim_holds_if_its_write_was_kept(
    sea: Bay, tmp_path: Path, statements: str, did: dict[str, Any], passed: bool
) -> None:
    async def scene(db: Any) -> bool | None:
        await db.execute(SEED)
        await db.mark()
        check = ClaimMatchesState((Claim(says="done", did={"type": "db_write", **did}),))
        world = FakeWorld(tmp_path, db)
        await check.foresee(world)
        await db.execute(statements)
        world._audit = list(await db.writes())
        return check.decide(shown(await check.gather(world, Observation("t")), "done")).passed

    assert sea.with_server(scene) is passed


FUNCTIONS = {
    "postgres": """
CREATE FUNCTION noted() RETURNS int LANGUAGE sql AS 'INSERT INTO spare VALUES (9) RETURNING id';
CREATE FUNCTION sometimes() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
  IF (SELECT count(*) FROM orders) > 0 THEN INSERT INTO spare VALUES (9); END IF; RETURN 1; END $$;
CREATE SEQUENCE numbers;
""",
    "mysql": """
DELIMITER //
CREATE FUNCTION noted() RETURNS int DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO spare VALUES (9); RETURN 1; END//
CREATE FUNCTION sometimes() RETURNS int DETERMINISTIC MODIFIES SQL DATA BEGIN
  IF (SELECT count(*) FROM orders) > 0 THEN INSERT INTO spare VALUES (9); END IF; RETURN 1; END//
CREATE PROCEDURE escapes() BEGIN COMMIT; INSERT INTO spare VALUES (9); END//
DELIMITER ;
""",
}
WRITING = {
    "postgres": [
        "SELECT noted()", "SELECT sometimes()", "WITH x AS (DELETE FROM customers RETURNING id) SELECT count(*) FROM x",
        "SELECT id INTO copied FROM customers", "SELECT id FROM customers FOR UPDATE", "SELECT nextval('numbers')",
        "/* a */ INSERT INTO spare VALUES (1) RETURNING id", "EXPLAIN ANALYZE DELETE FROM customers",
        "COPY customers TO STDOUT", "TRUNCATE spare", "WITH x AS (SELECT '\\' AS a) INSERT INTO spare VALUES (1)",
        "VALUES (noted())", "TABLE customers FOR SHARE",
    ],
    "mysql": [
        "SELECT noted()", "SELECT sometimes()", "CALL escapes()", "-- a\nDELETE FROM customers", "TRUNCATE spare",
        "SELECT id FROM customers INTO OUTFILE '/tmp/x'", "/*!50000 INSERT */ INTO spare VALUES (1)",
        "CREATE TABLE copied AS SELECT * FROM customers", "ANALYZE DELETE FROM customers",
        "REPLACE INTO spare VALUES (1)",
    ],
}  # fmt: skip


def test_a_query_that_writes_is_the_specs_error_and_writes_nothing(sea: Bay, tmp_path: Path) -> None:
    async def scene(db: Any) -> dict[str, str]:
        await db.execute(SEED + FUNCTIONS[db.spec.kind])
        world, found = FakeWorld(tmp_path, db), {}
        for query in WRITING[db.spec.kind]:
            check = Sql("db", query, equals=1)
            found[query] = "nothing said"
            if list(check.problems()):
                found[query] = "error"
                continue
            try:
                await check.foresee(world)
                await db.execute("INSERT INTO orders VALUES (1, 'x')")
                await check.gather(world, Observation("t"))
            except HarnessError:
                found[query] = "error"
            await db.execute("DELETE FROM orders")
        spare = await db.query("SELECT count(*) FROM spare", timeout_s=10)
        assert spare.rows == ((0,),)
        return found

    found = sea.with_server(scene)
    assert found == dict.fromkeys(found, "error")
