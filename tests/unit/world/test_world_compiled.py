"""What is compiled is kept by what it is made of."""

from holdfast.world.compiled import get_cache_folder, make_name


def test_another_source_option_or_machine_is_another_file(tmp_path):
    a, b = tmp_path / "a.c", tmp_path / "b.c"
    a.write_text("int one;")
    first = make_name(a, ["-O2"], "x86_64", ("glibc", "2.36"))
    b.write_text("int two;")
    others = [
        make_name(b, ["-O2"], "x86_64", ("glibc", "2.36")),
        make_name(a, ["-O3"], "x86_64", ("glibc", "2.36")),
        make_name(a, ["-O2"], "aarch64", ("glibc", "2.36")),
        make_name(a, ["-O2"], "x86_64", ("glibc", "2.39")),
    ]
    a.write_text("int three;")
    others.append(make_name(a, ["-O2"], "x86_64", ("glibc", "2.36")))
    assert len({first, *others}) == 6
    assert first.startswith("a-")


def test_it_is_kept_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert get_cache_folder("compiled") == tmp_path / "holdfast" / "compiled"
