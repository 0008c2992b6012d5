"""The script of a PostgreSQL server: our own account is left out, and the part about roles ends where it should."""

from holdfast.world.services.postgres.server import find_globals_end, remove_own_account
from holdfast.world.services.settings import OWN_ACCOUNT


def test_our_account_is_left_out_of_the_roles_alone(tmp_path):
    path = tmp_path / "db.dump"
    path.write_text(f"CREATE ROLE app;\nCREATE ROLE {OWN_ACCOUNT};\n\\connect app\nCREATE ROLE {OWN_ACCOUNT};\n")
    remove_own_account(path)
    line = f"CREATE ROLE {OWN_ACCOUNT};"
    assert path.read_text() == f"CREATE ROLE app;\n{'-' * len(line)}\n\\connect app\n{line}\n"
    assert path.read_bytes()[find_globals_end(path) :].startswith(b"\n\\connect app")


def test_a_script_that_is_empty_or_has_no_database_is_all_roles(tmp_path):
    path = tmp_path / "db.dump"
    path.touch()
    remove_own_account(path)
    assert (path.read_bytes(), find_globals_end(path)) == (b"", 0)
    path.write_text("CREATE ROLE app;\n")
    assert find_globals_end(path) == path.stat().st_size
