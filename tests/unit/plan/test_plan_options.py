"""What a run was begun with, and what may be asked of it later."""

from __future__ import annotations

from pathlib import Path

from holdfast.cli.options import build_run_options
from holdfast.cli.run import run
from holdfast.plan import RunOptions, Select
from holdfast.plan.options import SETTLED, VERDICT
from holdfast.plan.select import Shard

BEGUN = RunOptions(
    Select(("d*",)), replicas=3, seed=7, min_score=40.0, strict=True, replay=Path("/tmp/calls"), keep=True
)


def test_what_is_run_stays_and_what_counts_as_held_may_be_asked_again() -> None:
    now = RunOptions(min_score=90.0, max_errors=1, concurrency=4)
    assert BEGUN.merge_resumed(now) == RunOptions(
        Select(("d*",)), replicas=3, seed=7, min_score=90.0, strict=True, max_errors=1, concurrency=4,
        replay=Path("/tmp/calls"),
    )  # fmt: skip


def test_a_settled_option_that_is_given_otherwise_is_named() -> None:
    for now, flag in [
        (RunOptions(), ""),
        (RunOptions(Select(("d*",)), replicas=3, seed=7, replay=Path("/tmp/../tmp/calls")), ""),
        (RunOptions(concurrency=9, min_score=1.0, fail_fast=True, keep=True, record=Path("x")), ""),
        (RunOptions(Select(("e*",))), "--scenario"),
        (RunOptions(Select((), ("r",))), "--invariant"),
        (RunOptions(Select((), (), ("abcd",))), "--trial"),
        (RunOptions(Select(shard=Shard(1, 2))), "--shard"),
        (RunOptions(replicas=4), "--replicas"),
        (RunOptions(seed=8), "--seed"),
        (RunOptions(profile="x"), "--profile"),
        (RunOptions(backend="docker"), "--backend"),
        (RunOptions(replay=Path("/tmp/others")), "--replay"),
    ]:
        assert BEGUN.find_changed_option(now) == flag, (now, flag)


def test_every_option_is_a_flag_and_every_flag_an_option() -> None:
    shown = {"config", "resume", "force", "outputs", "otlp", "as_json", "quiet", "verbose", "dry_run", "no_report"}
    shown |= {"file", "last_failed", "annotations", "cached"}
    context = run.make_context("run", [])
    chaos = {"chaos": False, "chaos_profile": None}  # of `holdfast run` alone
    chaos |= {"sessions": None, "live": False}  # of `holdfast replay run` alone
    flags = {name: value for name, value in context.params.items() if name not in shown} | chaos
    assert build_run_options(**flags) == RunOptions()
    spelled = {
        "scenarios": "select",
        "invariants": "select",
        "trials": "select",
        "keywords": "select",
        "shard": "select",
        "no_preflight": "preflight",
    }
    fields = {spelled.get(str(name), str(name)) for name in flags}
    assert fields | {"part", "hunt"} == set(RunOptions.__struct_fields__)
    assert not set(SETTLED) & set(VERDICT)
    assert {*SETTLED, *VERDICT} < set(RunOptions.__struct_fields__)
