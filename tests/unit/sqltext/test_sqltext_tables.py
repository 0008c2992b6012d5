"""Names of tables, and which of them a list covers."""

from __future__ import annotations

from holdfast.sqltext.lexer import format_name, is_covered


def test_a_bare_name_is_of_the_default_schema_alone() -> None:
    for allowed, name, default, covered in [
        ("a", "public.a", "public", True),
        ("A", "public.a", "public", True),
        ("a*", "public.abc", "public", True),
        ("a", "app.a", "public", False),
        ("a", "app.a", "app", True),
        ("a", "app.a", "", False),
        ("a", "a", "", True),
        ("public.a", "public.a", "public", True),
        ("app.a", "app.a", "public", True),
        ("*.a", "app.a", "public", True),
        ("*", "app.a", "public", False),
        ("app.*", "app.public.a", "public", False),
        ("*.*.a", "app.public.a", "public", True),
        ("*.*.a", "app.a", "public", False),
        ("app.*", 'app."b.c"', "public", True),
        ("app.a", 'public."app.a"', "public", False),
    ]:
        assert is_covered([allowed], name, default) is covered, (allowed, name, default, covered)


def test_a_dot_in_a_name_is_not_a_schema() -> None:
    assert format_name("a.b", "c") == '"a.b".c'
    assert format_name("a", "b.c") == 'a."b.c"'
