"""Fixtures of the HTTP plane: a proxy with trials behind it, and servers to reach through it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.planes.http.authority import Authority
from http_proxy_kit import Bench, Server, served


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that upstream servers have their certificates from: not ours."""
    return Authority(tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory, elsewhere: Authority) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("run"), elsewhere.own_file)
    yield bench
    bench.close()


@pytest.fixture
def plain() -> Iterator[Server]:
    with served() as server:
        yield server


@pytest.fixture
def secure(elsewhere: Authority) -> Iterator[Server]:
    with served(elsewhere.get_leaf_context("localhost")) as server:
        yield server
