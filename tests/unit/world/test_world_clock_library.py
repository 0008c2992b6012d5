"""The library is compiled once, tried, and told of where it is not available."""

import asyncio
from pathlib import Path

import pytest

from golden_words import Golden
from holdfast.model.world import Isolation
from holdfast.world.compiled import INSTALL
from holdfast.world.world_clock import find_clock_library


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "holdfast" / "compiled"


def program(folder, text):
    folder.mkdir()
    path = folder / "cc"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(folder)


def test_it_is_compiled_once(cache, monkeypatch, tmp_path):
    found = asyncio.run(find_clock_library())
    assert isinstance(found, Path), found
    assert [*cache.iterdir()] == [found]
    assert cache.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("PATH", str(tmp_path))
    assert asyncio.run(find_clock_library()) == found


def test_without_a_compiler_it_says_what_to_install(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = asyncio.run(find_clock_library())
    assert isinstance(found, Isolation)
    assert (found.feature, found.enforced) == ("clock", False)
    assert INSTALL in found.why
    assert [*cache.iterdir()] == []


def test_a_compiler_without_headers_says_what_to_install(cache, monkeypatch, tmp_path):
    path = program(tmp_path / "bin", "echo 'x.c:1: fatal error: dlfcn.h: No such file or directory' >&2; exit 1")
    monkeypatch.setenv("PATH", path)
    found = asyncio.run(find_clock_library())
    assert isinstance(found, Isolation)
    assert "dlfcn.h" in found.why
    assert INSTALL in found.why
    assert [*cache.iterdir()] == []


def test_a_library_that_does_nothing_is_not_kept(cache, monkeypatch, tmp_path, golden: Golden):
    path = program(tmp_path / "bin", 'while [ "$1" != -o ]; do shift; done; : > "$2"')
    monkeypatch.setenv("PATH", path)
    found = asyncio.run(find_clock_library())
    assert isinstance(found, Isolation)
    golden(found.why)
    assert [*cache.iterdir()] == []


def test_a_cache_that_cannot_be_written_is_named(cache, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    found = asyncio.run(find_clock_library())
    assert isinstance(found, Isolation)
    assert str(tmp_path / "file") in found.why
    assert "XDG_CACHE_HOME" in found.why
