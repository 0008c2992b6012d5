"""The summary of a run for a terminal or a pipe, as one string."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.model.run import Run
from holdfast.report import calls, cases, wording
from holdfast.report.failures import untold
from holdfast.report.matrix import draw, grid
from holdfast.report.paint import Paint, painter
from holdfast.report.safe import ascii_only, one_line


def summary(
    run: Run, *, width: int, color: bool, verbose: bool = False, quiet: bool = False, unicode: bool = True
) -> str:
    """Did it hold, where not, why, and how to see it again; `quiet` keeps the numbers and the verdict."""
    paint = painter(color)
    parts = [] if quiet else list(_parts(run, width, paint, verbose))
    text = "\n".join([*parts, *_numbers(run, paint, quiet), _verdict(run, paint)]) + "\n"
    # Colour codes are ASCII, so they survive.
    return text if unicode else ascii_only(text)


def _parts(run: Run, width: int, paint: Paint, verbose: bool) -> Iterator[str]:
    """Matrix, cases, and why each did not hold."""
    if wording.has_matrix(run):
        lines = draw(grid(run), width, paint)
        yield from lines if lines and not lines[-1] else (*lines, "")
    if run.by_cases:
        from holdfast.report import case_blocks

        yield from (*case_blocks.table(run, width, paint), "")
        yield from case_blocks.blocks(run, width, paint, verbose=verbose)
    if any(untold(run)):
        from holdfast.report.cause_blocks import blocks

        yield from blocks(run, width, paint, verbose=verbose)


def _numbers(run: Run, paint: Paint, quiet: bool) -> Iterator[str]:
    if run.score.mutation is not None:
        from holdfast.report import mutations

        yield paint(mutations.headline(run.score), "bold")
        yield mutations.judged(run.score)
    elif run.by_cases:
        sample = "" if run.score.replicas > 1 or quiet or wording.has_matrix(run) else f"   {cases.ONE_SAMPLE}"
        yield f"{paint(cases.counted(run), 'bold')}{sample}"
    if wording.has_matrix(run):
        yield _score(run, paint)
        if cost := wording.paired(run.score):
            yield cost
        yield wording.judged(run.score) if quiet else _sample(run)
    if not quiet:
        yield from _about_calls(run)
        yield from _about_replicas(run)
        yield from (f"note: {one_line(note)}" for note in run.notes)
    yield from (paint(wording.format_warning(one), "warning") for one in run.warnings)


def _score(run: Run, paint: Paint) -> str:
    score = run.score
    parts = [f"Resilience {paint(wording.number(score.value), 'bold')}"]
    if sure := wording.interval(score.interval):
        parts.append(f"({sure})")
    parts += [f"{name} {value}" for name, value in wording.calm_and_chaos(score)]
    return "   ".join(parts)


def _sample(run: Run) -> str:
    parts = [wording.judged(run.score)]
    if run.score.replicas == 1:
        parts.append(wording.ONE_SAMPLE)
    return "   ".join(parts)


def _about_calls(run: Run) -> Iterator[str]:
    if run.score.attacks is not None:
        yield calls.attacks(run.score.attacks)
    if calls.used(run.score.spent):
        yield one_line(calls.used(run.score.spent))


def _about_replicas(run: Run) -> Iterator[str]:
    if run.score.flaky:
        yield f"{wording.plural(run.score.flaky, 'flaky cell')}: replicas of one prompt disagree"
    if run.score.pass_hat:
        yield "   ".join(f"pass^{k} {value:.2f}" for k, value in wording.pass_hat(run.score).items())
    if run.score.tolerated:
        yield f"tolerated by the minimum of {run.score.min_score:g}: {one_line(', '.join(run.score.tolerated))}"


def _verdict(run: Run, paint: Paint) -> str:
    if run.running:
        return wording.running(paint)
    word = wording.verdict(run.score)
    reasons = [one_line(reason) for reason in run.score.reasons]
    if not run.complete:
        # The reason for an interrupt comes first, and the word INTERRUPTED has said it.
        reasons = [*(reasons[1:] if word == "INTERRUPTED" else reasons), f"go on: {wording.resume(run)}"]
    said = f"{paint(word, word)}   {', '.join(reasons)}".rstrip()
    return f"{said}   ·   {one_line(wording.report_path(run))}"
