"""Values on the command line: replicas, money, time, shards of a run, backends."""

from __future__ import annotations

from typing import Any

import click

AUTO = "auto"
MAX_REPLICAS = 20
"""Of `--replicas auto`, unless something else is asked."""
MAX_SHARDS = 10_000


class ReplicaCount(click.IntRange):
    """A number of replicas, or `auto`."""

    def __init__(self) -> None:
        super().__init__(1, 100_000)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return AUTO if value == AUTO else super().convert(value, param, ctx)


class Dollars(click.FloatRange):
    """A number over 0, and a real one: nothing is ever more than `nan`."""

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not number < float("inf"):
            self.fail(f"{value!r} is no amount", param, ctx)
        return number


class BackendName(click.ParamType):  # type: ignore[type-arg]  # generic for the type checker alone
    """A sandbox backend, built in or installed."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from holdfast import plugins

        # Installed ones take a while to find, and most runs name none.
        if value not in plugins.BUILT_IN["sandboxes"] and value not in plugins.names("sandboxes"):
            self.fail(f"{value!r} is not one of {', '.join(plugins.names('sandboxes'))}", param, ctx)
        return value


class Seconds(click.ParamType):  # type: ignore[type-arg]  # generic for the type checker alone
    """Seconds, or a number with a unit: 90s, 5m, 1h."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from holdfast.reading.durations import duration_ms

        text = str(value)
        found = duration_ms(f"{text}s" if text.replace(".", "", 1).isdecimal() else text)
        if not found:
            self.fail(f"{value!r} is not a time: write 90 (seconds), 90s, 5m or 1h", param, ctx)
        return found / 1000


class ShardOf(click.ParamType):  # type: ignore[type-arg]  # generic for the type checker alone
    """One of so many shards: 2/4."""

    name = "shard"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from holdfast.plan.select import Shard

        number, _, of = str(value).partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= MAX_SHARDS):
            self.fail(f"{value!r} is not a shard: write 2/4 for the second of four", param, ctx)
        return Shard(int(number), int(of))
