"""The statement log and the row counters become one list of writes."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from holdfast.model.world import AuditEvent
from holdfast.sqltext.writes import Write
from holdfast.world.services.log import LINE_LIMIT, LogLines, ServerLog
from holdfast.world.services.mysql.audit import MyLog, mark_emptied
from holdfast.world.services.postgres.audit import PgLog
from holdfast.world.services.write_tally import (
    ENTRY_LIMIT,
    Counters,
    Tables,
    TableShape,
    WriteTally,
    build_events,
    find_remade,
)


def told(log: PgLog | MyLog, counters: Counters) -> list[tuple[str, str, int | None]]:
    log.flush()
    return [_short(event) for event in build_events("db", log.tally, counters, 99.0)]


def _short(event: AuditEvent) -> tuple[str, str, int | None]:
    return event.details["table"], event.details["op"], event.details["rows"]


def pg(*lines: str) -> PgLog:
    log = PgLog()
    for line in lines:
        log.add_line(line.encode())
    return log


def counted(**tables: dict[str, int]) -> Counters:
    return Counters(dict(tables), frozenset(tables))


DROP = "@1.0 7 LOG:  statement: DROP TABLE a"


@pytest.mark.parametrize(
    ("lines", "rows", "expected"),
    [
        (
            ("@2.0 7 LOG:  statement: UPDATE b SET x = 1", "@1.0 8 LOG:  execute p1: INSERT INTO a VALUES ($1)"),
            {"a": {"insert": 3}, "b": {"update": 1}},
            [("a", "insert", 3), ("b", "update", 1)],
        ),
        (("@1.0 7 LOG:  statement: DELETE FROM a WHERE false",), {}, []),
        ((), {"a": {"insert": 0, "delete": 2}}, [("a", "delete", 2)]),
        ((DROP,), {}, [("a", "drop", None)]),
        ((DROP, '@1.1 7 ERROR:  table "a" does not exist'), {}, []),
        ((DROP, "@1.1 8 ERROR:  syntax error"), {}, [("a", "drop", None)]),
        (
            ("@1.0 7 LOG:  statement: BEGIN; UPDATE a SET x = ';'; INSERT INTO b VALUES (1); COMMIT",),
            {"a": {"update": 1}, "b": {"insert": 1}},
            [("a", "update", 1), ("b", "insert", 1)],
        ),
        (("@1.0 7 LOG:  statement: CREATE TEMP TABLE q (a int)", "@1.0 7 LOG:  statement: DROP TABLE q"), {}, []),
    ],
    ids=[
        "order from the log, rows from the counters",
        "no row changed",
        "rows without a statement",
        "a change of the schema has no rows",
        "a statement that failed",
        "an error of another session",
        "several statements in one message",
        "a temporary table",
    ],
)
def test_writes_of_postgres(
    lines: tuple[str, ...], rows: dict[str, dict[str, int]], expected: list[tuple[str, str, int | None]]
) -> None:
    assert told(pg(*lines), counted(**rows)) == expected


def test_our_own_sessions_are_left_out() -> None:
    log = PgLog()
    log.add_own_session(7)
    log.add_line(b"@1.0 7 LOG:  statement: DROP TABLE a")
    assert told(log, counted()) == []


def test_a_statement_of_many_lines_cannot_look_like_an_entry() -> None:
    log = PgLog()
    log.add_own_session(7)
    for line in (b"@1.0 8 LOG:  statement: SELECT 1", b"\t@1.0 9 LOG:  statement: DROP TABLE a"):
        log.add_line(line)
    log.add_line(b"@1.0 8 LOG:  statement: INSERT INTO")
    log.add_line(b"\tb VALUES (1)")
    assert told(log, counted(b={"insert": 1})) == [("b", "insert", 1)]


def test_a_bare_name_means_the_one_table_of_that_name() -> None:
    log = pg("@1.0 7 LOG:  statement: UPDATE orders SET x = 1", "@1.0 7 LOG:  statement: UPDATE public.a SET x = 1")
    counters = Counters({"app.orders": {"update": 2}, "a": {"update": 1}}, frozenset({"app.orders", "a"}))
    assert told(log, counters) == [("app.orders", "update", 2), ("a", "update", 1)]


def my(*lines: str, database: str = "app") -> MyLog:
    log = MyLog(database)
    for line in lines:
        log.add_line(line.encode())
    return log


def any_kind(**tables: int) -> Counters:
    named = {name.replace("__", "."): {"write": rows} for name, rows in tables.items()}
    return Counters(named, frozenset(named), by_operation=False)


def test_mariadb_log() -> None:
    log = my(
        "261116  2:34:01\t     3 Connect\tapp@localhost on app using Socket",
        "\t\t     3 Query\tinsert into t values (1),",
        "(2)",
        "\t\t     3 Execute\tupdate u set a = 1",
        "2026-01-01T00:00:00.000000Z\t    8 Query\tdelete from v",
        "\t\t     3 Prepare\tupdate never set a = ?",
    )
    counters = any_kind(t=2, u=1, v=4)
    assert sorted(told(log, counters)) == [("t", "insert", 2), ("u", "update", 1), ("v", "delete", 4)]


def test_mariadb_cannot_say_how_many_rows_were_whose() -> None:
    log = my("\t\t     3 Query\tinsert into t values (1)", "\t\t     3 Query\tdelete from t where a = 9")
    assert told(log, any_kind(t=1)) == [("t", "insert", None), ("t", "delete", None)]
    assert told(my("\t\t     3 Query\tdelete from t where a = 9"), any_kind()) == []


def test_a_table_of_another_database_is_named_with_it() -> None:
    log = my("\t\t     3 Init DB\tother", "\t\t     3 Query\tinsert into z values (1)", "\t\t     3 Query\tuse app",
             "\t\t     3 Query\tinsert into app.t values (1)")  # fmt: skip
    assert sorted(told(log, any_kind(other__z=1, t=1))) == [("other.z", "insert", 1), ("t", "insert", 1)]


def test_a_forged_entry_hides_nothing() -> None:
    log = MyLog("app")
    log.add_own_session(4)
    for line in ("\t\t     3 Query\tselect '", "\t\t     4 Connect\tx", "'", "\t\t     3 Query\tdelete from t"):
        log.add_line(line.encode())
    assert told(log, any_kind(t=5)) == [("t", "delete", 5)]


def test_emptying_the_counters_is_reported() -> None:
    assert told(my("\t\t     3 Query\tFLUSH TABLE_STATISTICS"), any_kind()) == [("*", "reset counters", None)]


def test_memory_stays_bounded_whatever_is_written() -> None:
    tally = WriteTally()
    for n in range(ENTRY_LIMIT + 500):
        tally.add(Write("create", f"t{n}", counted=False), float(n))
    assert sum(1 for _ in tally.list_entries()) == ENTRY_LIMIT + 1


@pytest.mark.parametrize("size", [1, 7, 65_536, 1_000_000])
def test_lines_are_cut_and_come_in_any_pieces(size: int) -> None:
    data = b"first\n" + b"x" * (LINE_LIMIT + 10) + b"\nlast\nopen"
    seen: list[bytes] = []
    lines = LogLines(seen.append)
    for at in range(0, len(data), size):
        lines.add(data[at : at + size])
    assert seen == [b"first", b"x" * LINE_LIMIT, b"last"]


def test_what_the_list_of_tables_tells_and_no_statement_is_a_write() -> None:
    log = pg("@1.0 7 LOG:  statement: TRUNCATE a", "@2.0 7 LOG:  statement: DELETE FROM b")
    counters = Counters(
        {"b": {"delete": 1}}, frozenset("ab"), remade={"a": "truncate", "b": "rewrite", "app.c": "drop"}, default="main"
    )
    assert told(log, counters) == [
        ("a", "truncate", None),
        ("b", "delete", 1),
        ("b", "rewrite", None),
        ("app.c", "drop", None),
    ]


def test_a_bare_table_is_reported_with_its_schema_and_nothing_else_is() -> None:
    log = pg("@1.0 7 LOG:  statement: TRUNCATE a, app.b", "@2.0 7 LOG:  statement: CREATE ROLE x; GRANT x TO y")
    log.flush()
    found = build_events("db", log.tally, Counters({}, frozenset(), default="main"), 99.0)
    assert {event.details["table"]: event.details.get("schema") for event in found} == {
        "a": "main",
        "app.b": None,
        "role x": None,
        "": None,
    }


def test_names_are_bare_in_the_default_schema_alone() -> None:
    log = PgLog()
    log.default = "app"
    log.add_line(b"@1.0 7 LOG:  statement: TRUNCATE app.a, public.a")
    assert told(log, Counters({}, frozenset())) == [("a", "truncate", None), ("public.a", "truncate", None)]


# Two looks at the tables of a database.


OLD = TableShape("id int", (1,))


@pytest.mark.parametrize(
    ("after", "op"),
    [
        (OLD, None),
        (None, "drop"),
        (TableShape("id text", (2,)), "alter"),
        (TableShape("id int", (2,), empty=True), "truncate"),
        (TableShape("id int", (2,)), "rewrite"),
    ],
)
def test_what_has_changed_of_a_table(after: TableShape | None, op: str | None) -> None:
    assert find_remade({"t": OLD}, {"t": after} if after else {}) == ({"t": op} if op else {})


def test_a_new_table_was_made_and_a_part_is_reported_as_its_table() -> None:
    parts: Tables = {"t_1": TableShape("id int", (1,), of="t"), "t_2": TableShape("id int", (2,), of="t")}
    after: Tables = {name: TableShape("id int", (9,), of="t", empty=True) for name in parts}
    assert find_remade(parts, {**after, "new": OLD}) == {"t": "truncate", "new": "create"}


def test_a_table_that_is_known_by_its_date_alone_has_lost_its_rows() -> None:
    before: Tables = {name: TableShape("", ("now",), dated=True) for name in ("lost", "counted")}
    before["always"] = TableShape("", ("now",), dated=True, empty=True)
    after: Tables = {name: TableShape("", ("now",), dated=True, empty=True) for name in before}
    assert find_remade(before, mark_emptied(before, after, {"counted": {"write": 3}})) == {"lost": "truncate"}


# The log of a server, and how its end is noticed.


def test_an_end_that_came_while_this_process_was_stopped_is_not_a_timeout() -> None:
    """As after Ctrl-Z: when the process goes on, the limit is over and the end waits unread behind other output."""

    async def play() -> bool:
        ours, theirs = os.pipe()
        log = ServerLog(ours)
        waiting = asyncio.create_task(log.wait_for_end(0.05))
        await asyncio.sleep(0)
        os.write(theirs, b"shutting down\n")
        os.close(theirs)
        time.sleep(0.1)
        await waiting
        try:
            return log.ended
        finally:
            log.close()

    assert asyncio.run(play())


def test_a_server_that_does_not_end_is_a_timeout() -> None:
    async def play() -> None:
        ours, theirs = os.pipe()
        log = ServerLog(ours)
        try:
            await log.wait_for_end(0.01)
        finally:
            log.close()
            os.close(theirs)

    with pytest.raises(TimeoutError):
        asyncio.run(play())
