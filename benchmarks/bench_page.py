"""The HTML page of 10,000 cells: its size, and how soon Chromium can use it. What a page of 100,000 costs."""

from __future__ import annotations

from pathlib import Path
from random import Random

import bench_inline
from measure import HOLDFAST, best, command, limited, project, row

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run"]  # fmt: skip
WORDS = [
    "revenue",
    "quarter",
    "source",
    "market",
    "report",
    "figure",
    "growth",
    "profit",
    "margin",
    "unit",
    "share",
    "price",
    "index",
    "fund",
    "bond",
]


def agent() -> str:
    """Answers of about 200 characters, a different one for each trial."""
    return f"""
import os
from random import Random
WORDS = {WORDS!r}
def agent(prompt):
    rng = Random(os.environ["HOLDFAST_TRIAL"])
    text = "source:"
    while len(text) < 200:
        text += " " + rng.choice(WORDS) + str(rng.randrange(100))
    return text[:200]
"""


def spec() -> str:
    rng = Random(7)
    lines = [
        'agent: {type: python, endpoint: "wordy:agent", isolation: inline}',
        'golden_prompts: ["What was revenue?"]',
    ]
    lines += ["contract:", "  name: page", "  invariants:"]
    for i in range(100):
        value = "source" if i % 10 else f"margin{rng.randrange(100)}"
        lines.append(f"    - {{id: rule-{i}, type: contains, value: {value}, description: x}}")
    lines += ["chaos_matrix:", *(f"  - {{name: scenario-{j}}}" for j in range(100))]
    return "\n".join(lines) + "\n"


def interactive_ms(page: Path) -> float:
    """From opening the file to the end of the page's own start-up; best of 3."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        times = []
        for _ in range(3):
            tab = browser.new_page()
            tab.goto(page.as_uri())
            tab.wait_for_selector("[data-ready]", state="attached")
            times.append(float(tab.evaluate("Number(document.querySelector('[data-ready]').dataset.ready)")))
            tab.close()
        browser.close()
    return min(times)


def large() -> None:
    """The inline run of 100,000 cells with its page, and every format of it."""
    files = {"fast.py": bench_inline.AGENT, "bench.yaml": bench_inline.spec(1000, 100)}
    with project(files) as folder:
        run = [*HOLDFAST, "contract", "run", "-q", "-c", "bench.yaml", "--no-preflight"]
        bare, spent = best([*run, "--no-report"], 2, folder), best(run, 2, folder)
        limited("100000 cells with their page, CPU", spent.cpu_s, "{:.2f} s", most=6)
        row("  the page alone", f"{spent.cpu_s - bare.cpu_s:.2f} s")
        limited("  peak memory", spent.peak_mb, "{:.0f} MB", most=100)
        size = (folder / ".holdfast/runs/0003/report.html").stat().st_size
        limited("  size", size / 1e6, "{:.2f} MB", most=3)
        for suffix in ("json", "xml"):
            spent = best([*run, "--no-report", "-o", f"run.{suffix}"], 2, folder)
            row(f"  .{suffix} alone", f"{spent.cpu_s - bare.cpu_s:.2f} s")
            limited("    peak memory", spent.peak_mb, "{:.0f} MB", most=100)


def main() -> None:
    print("page: the report of 10,000 cells with 200-character answers")
    with project({"wordy.py": agent(), "bench.yaml": spec()}) as folder:
        run = [*HOLDFAST, "contract", "run", "-q", "-c", "bench.yaml", "--min-score", "1", "--no-preflight"]
        command(run, folder)
        page = folder / ".holdfast/runs/0001/report.html"
        limited("size", page.stat().st_size / 1e6, "{:.2f} MB", most=3)
        if Path(CHROMIUM).exists():
            limited("usable in Chromium after", interactive_ms(page), "{:.0f} ms", most=1000)
        else:
            row("usable in Chromium after", "not measured", "chromium is not installed")
    large()
