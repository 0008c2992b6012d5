"""`db_unchanged_except`: which tables may change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from error_code import has_code
from holdfast.checks.state import db_unchanged_except
from holdfast.checks.state.db_unchanged_except import DbUnchangedExcept
from holdfast.checks.state.recorded import build_evidence
from holdfast.checks.state.tables import read_fingerprints
from holdfast.errors import HarnessError, QueryFailed
from holdfast.model.verdict import Finding
from world_kit import FakeDatabase, FakeWorld, gathered, rows, run, shown

Tables = dict[str, int]
"""By `schema.name`, what its content sums up to."""


class Changing(FakeDatabase):
    """Tables that can be changed."""

    def __init__(self, tables: Tables, version: str = "PostgreSQL 16.1", default: str | None = "public") -> None:
        super().__init__(self._tell)
        self.tables = tables
        self.version = version
        self.default = default
        self.fault: Exception | None = None

    def _tell(self, sql: str) -> Any:
        if self.fault is not None:
            return self.fault
        if "triggers" in sql:
            return rows()
        if "pg_class" in sql or "information_schema" in sql:
            return rows(*((*name.split("."), "id", "int", 1, None, None, True) for name in sorted(self.tables)))
        if sql.startswith("SHOW CREATE"):
            return rows(["", f"CREATE TABLE it (id int) AUTO_INCREMENT={len(self.asked)}"])
        if "version" in sql:
            return rows([self.version])
        if sql in ("SELECT current_schema()", "SELECT database()"):
            assert ("current" in sql) == self.version.startswith("PostgreSQL")
            return rows([self.default])
        named = [name for name in sorted(self.tables) if name.split(".")[1] in sql]
        return rows(*((n, self.tables[name], "0") for n, name in enumerate(named)))


def judged(before: Tables, after: Tables, *allowed: str, **more: Any) -> Finding:
    check, db = DbUnchangedExcept("db", allowed), Changing(before, **more)
    world = FakeWorld(Path("/nowhere"), db)
    run(check.foresee(world))
    db.tables = after
    finding: Finding = check.decide(gathered(check, world))
    return finding


BEFORE = {"public.customers": 1, "public.orders": 2, "app.log": 3}


@pytest.mark.parametrize(
    ("after", "allowed", "passed", "named"),
    [
        (BEFORE, (), True, "no other table changed (3 were compared)"),
        ({**BEFORE, "public.orders": 9}, (), False, "orders was changed"),
        ({**BEFORE, "public.orders": 9}, ("orders",), True, ""),
        ({**BEFORE, "public.orders": 9}, ("Ord*",), True, ""),
        ({**BEFORE, "public.orders": 9}, ("public.orders",), True, ""),
        ({**BEFORE, "app.log": 9}, ("log",), False, "app.log was changed"),
        ({**BEFORE, "app.log": 9}, ("*",), False, "app.log was changed"),
        ({**BEFORE, "app.log": 9}, ("*.log",), True, ""),
        ({**BEFORE, "app.orders": 9}, ("orders",), False, "app.orders was made"),
        ({**BEFORE, "app.log": 9}, ("app.*",), True, ""),
        ({**BEFORE, "app.log": 9}, ("other.log",), False, "app.log was changed"),
        ({"public.customers": 1, "app.log": 3}, (), False, "orders was dropped"),
        ({**BEFORE, "public.spare": 1}, ("orders",), False, "spare was made"),
    ],
)
def test_only_what_is_allowed_may_change(after: Tables, allowed: tuple[str, ...], passed: bool, named: str) -> None:
    found = judged(BEFORE, after, *allowed)
    assert found.passed is passed
    assert named in found.reason


@pytest.mark.parametrize(
    ("more", "allowed", "passed"),
    [
        ({"default": "app"}, "log", True),
        ({"default": "public"}, "log", False),
        ({"default": None}, "log", False),
        ({"default": None}, "app.log", True),
        ({"default": "app", "version": "10.11.6-MariaDB"}, "log", True),
        ({"default": "shop", "version": "10.11.6-MariaDB"}, "log", False),
    ],
)
def test_a_bare_name_leads_where_it_would_lead_the_agent(more: dict[str, Any], allowed: str, passed: bool) -> None:
    assert judged(BEFORE, {**BEFORE, "app.log": 9}, allowed, **more).passed is passed


def test_a_database_that_is_gone_is_the_agents_doing() -> None:
    check, db = DbUnchangedExcept("db"), Changing(dict(BEFORE))
    world = FakeWorld(Path("/nowhere"), db)
    run(check.foresee(world))
    db.fault = QueryFailed("database shop does not exist")
    assert check.decide(gathered(check, world)).code == "tables-unreadable"
    db.fault = TimeoutError()
    with pytest.raises(HarnessError, check=has_code("check-timeout")):
        gathered(check, world)


def test_without_a_reading_before_there_is_no_evidence() -> None:
    with pytest.raises(HarnessError, check=has_code("check-not-recorded")):
        gathered(DbUnchangedExcept("db"), FakeWorld(Path("/nowhere"), Changing(dict(BEFORE))))


def test_many_tables_are_read_some_at_a_time_and_names_are_quoted() -> None:
    db = Changing({f"public.t{n:03}": n for n in range(120)})
    assert len(run(read_fingerprints(db, timeout_s=1))) == 120
    assert len(db.asked) == 2 + 3
    assert '"public"."t000"' in db.asked[2]
    other = Changing({"shop.orders": 1}, version="10.11.6-MariaDB")
    run(read_fingerprints(other, timeout_s=1))
    assert other.asked[2] == "SHOW CREATE TABLE `shop`.`orders`"
    assert "SHA2(`id`, 256)" in other.asked[-1]
    assert "`shop`.`orders`" in other.asked[-1]


@pytest.mark.parametrize(
    ("changed", "allowed", "passed"),
    [
        ("orders", (), False),
        ("orders", ("ord*",), True),
        ("app.log", ("app.log",), True),
        ("app.log", ("orders",), False),
    ],
)
def test_what_was_recorded_without_the_default_schema_is_judged(
    changed: str, allowed: tuple[str, ...], passed: bool
) -> None:
    check = DbUnchangedExcept("db", allowed)
    before = {"orders": "1", "app.log": "1"}
    found = build_evidence(["db"], db_unchanged_except.TableMarks(before, {**before, changed: "2"}))
    assert "default" not in found.data["found"]  # type: ignore[index]
    assert check.decide(shown(found)).passed is passed


def test_a_bare_name_is_not_guessed_at_where_the_default_schema_was_not_recorded() -> None:
    found = build_evidence(["db"], db_unchanged_except.TableMarks({"app.log": "1"}, {"app.log": "2"}))
    with pytest.raises(HarnessError, check=has_code("check-not-recorded")):
        DbUnchangedExcept("db", ("log",)).decide(shown(found))


def test_what_was_there_before_is_kept_by_the_world_of_the_trial() -> None:
    check, db = DbUnchangedExcept("db"), Changing(dict(BEFORE))
    first, other = FakeWorld(Path("/nowhere"), db), FakeWorld(Path("/nowhere"), db)
    run(check.foresee(first))
    assert list(first.foreseen) == [("db_unchanged_except", "db")]
    with pytest.raises(HarnessError, check=has_code("check-not-recorded")):
        gathered(check, other)
