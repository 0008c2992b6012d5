"""Makes the pictures of docs/images: `python tests/integration/view_pictures.py [NAME...]`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import chdir
from pathlib import Path
from shutil import copytree
from typing import Any

from view_kit import ARGUMENTS, CHROMIUM, SPEC, contract_run, invoice_desk, viewing
from view_kit import holdfast as run_holdfast

import holdfast

IMAGES = Path(__file__).parents[2] / "docs" / "images"
A, B, C = "careless", "hasty", "careful"
VERSIONS = [A, B, A, A, B, B, B, C, B, C, B, A]
"""What the agent was in each run."""


def commit(folder: Path, message: str) -> None:
    git = ["git", "-c", "user.name=desk", "-c", "user.email=desk@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "add", "-A"], cwd=folder, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", message], cwd=folder, check=True)


def project(folder: Path) -> Path:
    """A desk whose agent changed a dozen times, with a run of each."""
    desk = invoice_desk(folder / "invoice-desk")
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=desk, check=True)
    (desk / ".gitignore").write_text(".holdfast\n__pycache__\n")
    for n, version in enumerate(VERSIONS):
        spec = SPEC.format(version=version)
        if n < 4:  # it had fewer scenarios at first
            spec = spec[: spec.index("    - name: model-reply-empty")]
        (desk / "holdfast.yaml").write_text(spec)
        commit(desk, f"{version} {n}")
        contract_run(desk, "--replicas", "3")
    return desk


def picture(page: Any, name: str) -> None:
    path = IMAGES / f"{name}.png"
    page.screenshot(path=str(path))
    print(f"{path.name} {path.stat().st_size // 1000} kB")


class Pictures:
    def __init__(self, browser: Any, url: str, desk: Path) -> None:
        self.browser, self.url, self.desk = browser, url, desk

    def page(self, fragment: str, width: int = 1200, height: int = 800, **settings: Any) -> Any:
        page = self.browser.new_context(viewport={"width": width, "height": height}, **settings).new_page()
        page.goto(self.url + fragment)
        page.wait_for_selector("html[data-ready]")
        page.wait_for_timeout(600)
        return page

    def list(self) -> None:
        page = self.page("#/", height=860)
        page.hover(".trend svg", position={"x": 760, "y": 60})
        picture(page, "view-list")

    def comparison(self) -> None:
        picture(self.page("#/compare/0010/0012", height=960), "view-comparison")

    def run(self) -> None:
        picture(self.page("#/run/0012", height=1000), "view-run")

    def trial(self) -> None:
        page = self.page("#/run/0012")
        page.click(".cause a.button")
        page.wait_for_selector("html[data-page=trial]")
        page.click(".call.faulty summary")
        page.set_viewport_size({"width": 1200, "height": 1030})
        page.evaluate("document.querySelector('.call.faulty').scrollIntoView({block: 'end'})")
        page.wait_for_timeout(600)
        picture(page, "view-trial")

    def phone(self) -> None:
        picture(self.page("#/run/0012", 390, 844, device_scale_factor=2), "view-phone")

    def dark(self) -> None:
        page = self.page("#/run/0012", height=860, color_scheme="dark")
        page.evaluate("document.querySelector('.matrix').scrollIntoView({block: 'center'})")
        page.wait_for_timeout(200)
        picture(page, "view-dark")

    def report(self) -> None:
        """The page of the careless finance agent, and a cell of it."""
        demo = self.desk.parent / "finance"
        copytree(Path(holdfast.__file__).parent / "demo" / "finance", demo)
        run_holdfast(demo, "contract", "run", "-q", "-c", "careless.yaml")
        page = self.browser.new_page(viewport={"width": 1200, "height": 1030})
        page.goto((demo / ".holdfast/runs/0001/report.html").as_uri())
        page.wait_for_selector("html[data-ready]")
        page.evaluate("document.querySelectorAll('.cause').forEach((one) => (one.open = false))")
        page.wait_for_timeout(600)
        picture(page, "report")
        page.set_viewport_size({"width": 1200, "height": 900})
        page.click(".matrix .cell.fail >> nth=1")
        page.wait_for_selector("#panel mark")
        page.wait_for_timeout(600)
        picture(page, "cell")

    def live(self) -> None:
        words = [str(Path(sys.executable).with_name("holdfast")), "contract", "run", "--no-report", "-q"]
        (self.desk / "holdfast.yaml").write_text(SPEC.format(version="unhurried"))
        running = subprocess.Popen([*words, "--replicas", "3", "--concurrency", "3"], cwd=self.desk, env=os.environ)
        try:
            time.sleep(3)
            page = self.page("#/run/0013", height=1000)
            page.wait_for_selector(".live:has(.under-way a) .recent li:nth-child(5)", timeout=30_000)
            picture(page, "view-live")
        finally:
            running.wait()


def main(names: list[str]) -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        desk = project(Path(folder))
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        with chdir(desk), viewing(desk) as url:  # commands are told as they are typed there
            pictures = Pictures(browser, url, desk)
            for name in names or ["report", "list", "run", "comparison", "trial", "phone", "dark", "live"]:
                getattr(pictures, name)()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
