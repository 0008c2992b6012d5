"""Makes the kits in this folder importable for every test below it."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import re
from collections.abc import Generator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from example_counts import examples
from golden_words import Golden, normalized, read, words_file, write

if os.environ.get("ON_UVLOOP"):  # the tests' own loops too
    import uvloop

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
gc.disable()  # until all is collected: what is imported and collected stays, and to look at it again is in vain
settings.register_profile(
    "shared machine", deadline=None, max_examples=examples(100)
)  # a slow moment of the machine is no finding
settings.load_profile("shared machine")
pytest.register_assert_rewrite("framework_kit")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what only root can run, and gives tests of minutes more time than pyproject.toml gives the others."""
    if os.getuid() != 0:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("root")])
        items[:] = [item for item in items if not item.get_closest_marker("root")]
    for item in items:
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(1800))


def pytest_collection_finish() -> None:
    """Thousands of tests are objects that live to the end: a test that collects garbage need not look at them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


_folders = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's own, which looks at every folder there is to number the next: of thousands, that is minutes."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}{next(_folders)}"
    path.mkdir(mode=0o700)
    return path


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test has failed: a machine that lacks a component must not look as if all were well."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"skipped although CI=true: {reason}"
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine function in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    """Compares words with those of the golden file: the first call with the first words of this test, and so on."""
    file, test = words_file(request.node.path.stem), request.node.name
    expected, actual = read(file).get(test, []), []

    def compare(value: object) -> None:
        actual.append(normalized(value, tmp_path))
        if os.environ.get("UPDATE_GOLDEN"):
            write(file, test, actual)
        else:
            assert actual == expected[: len(actual)], f"{file.name}: UPDATE_GOLDEN=1 writes it"

    return compare
